"""
A schedd without connections: its queue, with recorded and simulated events, its ads and its requests.

The queue is the schedd's own code, and so is the decision when a claim is reused; the ads for negotiators follow
`schedd/negotiation/advertiser.py`, which publishes them on the bus.
"""

from collections.abc import Callable, Sequence
from typing import Final

from kettle_services.schedd.domain.claims.reuse import ClaimReuse
from kettle_services.schedd.domain.negotiation.autoclusters import significant
from kettle_services.schedd.domain.negotiation.concurrency_limits import added
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import ResourceRequest, SubmitterAd
from kettle_wire.jobs import JobId

_ALWAYS: Final = ("Owner", "User", "ClusterId", "ProcId", "JobPrio")
_LIST: Final = 200
"""Resource requests in one ad, as a schedd's."""


class Schedd:
    """One queue as the negotiator and the startds meet it."""

    def __init__(self, queue: Queue, significant: Sequence[str] = (), *, clock: Callable[[], float]) -> None:
        self.queue = queue
        self.succession = ClaimReuse(queue, suits=lambda _job, _lease: True, clock=clock)
        self._significant = significant
        self.cycles: dict[str, int] = {}
        """Submitter -> the last cycle whose matches for it are in its claims."""
        self._pictures: dict[tuple[str, int], Ad] = {}
        """By submitter and autocluster, the attributes of its first job that tell it from others."""

    @property
    def name(self) -> str:
        """As its queue has it."""
        return self.queue.schedd

    def advert(self, submitter: str) -> SubmitterAd | None:
        """The demand of a submitter; None if it has no jobs here."""
        tally = self.queue.tally.by_submitter.get(submitter, {})
        if not any(tally.values()):
            return None
        requests = [
            ResourceRequest(
                autocluster=autocluster, count=count, ad=self._picture(submitter, job, autocluster)
            )
            for _, job, autocluster, count in self.queue.demand.requests(submitter)[:_LIST]
        ]
        return SubmitterAd(
            name=submitter,
            schedd=self.name,
            idle=tally.get("idle", 0),
            running=tally.get("running", 0) - self.queue.attendance.of(submitter),
            held=tally.get("held", 0),
            requests=requests,
            limits=added(self.queue.claim_use.limits.of(submitter), {}),
            cycle=self.cycles.get(submitter, 0),
        )

    def _picture(self, submitter: str, job: JobId, autocluster: int) -> Ad:
        picture = self._pictures.get((submitter, autocluster))
        if picture is None:
            ad = self.queue.ad(job)
            names = {*significant(ad, self._significant), *_ALWAYS}
            picture = {name: value for name, value in ad.items() if name in names}
            self._pictures[submitter, autocluster] = picture
        return picture
