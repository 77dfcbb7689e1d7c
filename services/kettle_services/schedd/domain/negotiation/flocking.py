"""
Which jobs may run in other pools, and when a submitter asks for more than its own pool gives.

A submitter's *level* is how many of the other pools it asks, in the order of FLOCK_TO, beside its own. It rises while jobs
wait that nobody offers a slot, and it falls to the last pool that it was needed for when none waits any more.
"""

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.classad import NOTHING, ClassAd, EvaluationFailed, evaluate_attribute
from kettle_wire.ads import Ad

if TYPE_CHECKING:
    from kettle_services.schedd.domain.queue.fold import Queue

WANTED: Final = "WantFlocking"
TO: Final = "FlockTo"


def may_flock(ad: Ad, pool: str, *, by_default: bool) -> bool:
    """
    Whether a job may run in another pool: by its WantFlocking, and by its FlockTo, a list of pools with commas between.

    A value that cannot be evaluated keeps a job in its own pool; undefined means the site's default.
    """
    folded = {name.lower(): value for name, value in ad.items()}
    if WANTED.lower() not in folded and TO.lower() not in folded:
        return by_default
    try:
        job = ClassAd.from_wire(ad)
        wanted = evaluate_attribute(WANTED, job, None, NOTHING) if WANTED.lower() in folded else by_default
        listed = evaluate_attribute(TO, job, None, NOTHING) if TO.lower() in folded else pool
    except EvaluationFailed:
        return False
    if not isinstance(listed, str):
        return False
    return wanted is True and pool in {name.strip() for name in listed.split(",")}


class Level(msgspec.Struct):
    """How far one submitter's jobs flock. Times are of the caller's clock, seconds."""

    pools: int = 0
    since: float | None = None
    """Since when jobs have waited with as many pools asked; None: none waits."""
    needed: int = 0
    """Of the pools asked, the last that offered something since jobs began to wait."""

    def offered(self, place: int) -> None:
        """The pool at a place in the order, from 1 on, has offered a slot."""
        self.needed = max(self.needed, place)

    def look(self, now: float, *, waiting: bool, patience: float, most: int) -> None:
        """
        Whether jobs wait now that nobody has offered a slot. After `patience` seconds one pool more is asked, `most` in all.
        """
        if not waiting:
            if self.since is not None:
                self.pools, self.since = self.needed, None
            return
        if self.since is None:
            self.since, self.needed = now, 0
        elif now - self.since >= patience and self.pools < most:
            self.pools, self.since = self.pools + 1, now


def flocked(queue: "Queue", pool: str = "") -> Counter[str]:
    """How many jobs of each submitter run in another pool, or in any."""
    found: Counter[str] = Counter()
    for claim, where in queue.claim_use.abroad.items():
        job = queue.claims[claim].job
        if job is not None and where == (pool or where) and queue.jobs[job].job.status == "running":
            found[queue.submitter(job)] += 1
    return found
