"""
Which job comes next on a claim that a job has left.

A claim is reused without negotiation by the next matching job in its submitter's order, of any autocluster. But a
dynamic slot was made for another job: a job that would leave cores or devices of it idle, or most of its memory, does
not get it. Then the claim ends, so that the whole slot is free for the next cycle, which divides it again a moment
later.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final

from kettle.classad import UNDEFINED, ClassAd, Context, EvaluationFailed, evaluate_attribute, matches
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.nodes import is_parallel
from kettle_wire.ads import Ad
from kettle_wire.events import ClaimGranted
from kettle_wire.jobs import JobId

_MANY: Final = 64
"""Autoclusters that are put in order for each claim that becomes free."""
_TOTAL: Final = "TotalSlot"
_UNSAID: Final = {"Cpus": 1.0}
_SPARE_MEMORY: Final = 1024.0
"""
MiB that are not worth a negotiation: requests of memory are hardly ever quite alike, and slots are rounded up.
"""


class Fit(Enum):
    """What a slot is for the jobs of an autocluster."""

    NONE = "it does not match"
    LARGE = "it would be idle in part"
    GOOD = "it is used"


class ClaimReuse:
    """
    The order in which the claims of a schedd are used again. What was found out about a claim is kept until it ends.
    """

    def __init__(
        self, queue: Queue, *, suits: Callable[[Ad, ClaimGranted], bool], clock: Callable[[], float]
    ) -> None:
        self._queue = queue
        self._suits = suits
        """Whether a job would ask for such a claim: for its lease, and in its pool."""
        self._clock = clock
        """Seconds since 1970."""
        self._fits: dict[str, dict[int, Fit]] = {}
        """Claim -> autocluster -> how it fits."""

    def next(self, claim: str) -> JobId | str:
        """The job that gets a claim without a job, or why none does."""
        granted = self._queue.claims[claim].granted
        for job, autocluster in self._best(granted):
            match self._fit(claim, granted, autocluster, job):
                case Fit.GOOD:
                    return job
                case Fit.LARGE:
                    return f"part of the slot would be idle with job {job}, which is next"
                case Fit.NONE:
                    continue
        return "no more jobs for the claim"

    def forget(self, claim: str) -> None:
        """The claim has ended."""
        self._fits.pop(claim, None)

    def _best(self, granted: ClaimGranted) -> Iterator[tuple[JobId, int]]:
        """
        Jobs for a claim, best first; of very many autoclusters its own comes first, because looking at all takes long.
        """
        if len(self._queue.demand.on_machines.get(granted.submitter, ())) > _MANY:
            own = self._queue.demand.next_job(granted.submitter, granted.autocluster)
            if own is not None and not is_parallel(self._queue, own):
                yield own, granted.autocluster
        for _, job, autocluster, _ in self._queue.demand.requests(granted.submitter):
            if not is_parallel(self._queue, job):  # these need their claims together
                yield job, autocluster

    def _fit(self, claim: str, granted: ClaimGranted, autocluster: int, job: JobId) -> Fit:
        if autocluster == granted.autocluster:
            return Fit.GOOD
        if granted.limits or self._queue.clusters[job.cluster].limited:
            return Fit.NONE  # what each may use of a limit, the negotiator says
        fits = self._fits.setdefault(claim, {})
        if autocluster not in fits:
            ad = self._queue.ad(job)
            slot = ClassAd.from_wire(granted.slot_ad)
            suits = self._suits(ad, granted)
            fits[autocluster] = fit(ClassAd.from_wire(ad), slot, self._clock()) if suits else Fit.NONE
        return fits[autocluster]


def fit(job: ClassAd, slot: ClassAd, now: float) -> Fit:
    """What a slot is for a job at an instant (seconds since 1970)."""
    context = evaluation.at(now)
    if not matches(job, slot, context):
        return Fit.NONE
    if _said("DynamicSlot", slot, None, context) is not True:
        return Fit.GOOD  # it cannot be divided
    idle = any(
        _idle(attribute.removeprefix(_TOTAL), job, slot, context)
        for attribute in slot
        if attribute.startswith(_TOTAL)
    )
    return Fit.LARGE if idle else Fit.GOOD


def _idle(name: str, job: ClassAd, slot: ClassAd, context: Context) -> bool:
    """
    Whether too much of one resource would be left. Disk does not count: jobs ask for what their input happens to take.
    """
    has = _said(f"{_TOTAL}{name}", slot, None, context)
    asked = _said(f"Request{name}", job, slot, context)
    if asked is UNDEFINED:
        asked = _UNSAID.get(name, 0.0)
    if name == "Disk" or not isinstance(has, int | float) or not isinstance(asked, int | float):
        return False
    if name == "Memory":
        return has > 2 * asked and has - asked > _SPARE_MEMORY
    return has > asked


def _said(name: str, ad: ClassAd, target: ClassAd | None, context: Context) -> object:
    try:
        return evaluate_attribute(name, ad, target, context)
    except EvaluationFailed:
        return None
