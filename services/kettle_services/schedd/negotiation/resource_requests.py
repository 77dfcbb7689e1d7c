"""What a submitter asks of a pool: its open jobs by autocluster, as far as they fit into an ad."""

from collections.abc import Callable
from typing import Final

import msgspec

from kettle_services.schedd.claims.requester import ClaimRequester
from kettle_services.schedd.domain.negotiation.autoclusters import significant
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.nodes import node_range
from kettle_services.schedd.domain.queue.runnable import Order
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import ResourceRequest
from kettle_wire.jobs import JobId

_LIST: Final = 200
"""Resource requests in one ad (NEGOTIATOR_RESOURCE_REQUEST_LIST_SIZE)."""
_BYTES: Final = 512 * 1024
"""Resource requests in one ad, encoded; at least one is always there."""
_ALWAYS: Final = ("Owner", "User", "ClusterId", "ProcId", "JobPrio")

Request = tuple[Order, JobId, int, int]
_size = msgspec.msgpack.Encoder().encode


class Picture(msgspec.Struct, frozen=True):
    """What was shown of a job, and what it was made of."""

    job: JobId
    entry: QueuedJob
    significant: tuple[str, ...]
    ad: Ad

    def shows(self, job: JobId, queue: Queue) -> bool:
        """Whether it is of this job as it is now."""
        return (
            self.job == job
            and self.entry is queue.jobs[job]
            and self.significant is queue.significant
            and queue.clusters[job.cluster].factory is None
        )


class ResourceRequests:
    """The open demand for one pool, of jobs that `suits` says may run there."""

    def __init__(
        self,
        queue: Queue,
        requester: ClaimRequester,
        suits: Callable[[JobId], bool] | None = None,
    ) -> None:
        self._queue = queue
        self._requester = requester
        self._suits = suits
        self._turns: dict[str, int] = {}
        """
        Submitter -> which of its many autoclusters come next: by a turn that all share, each would skip some permanently.
        """
        self._pictures: dict[str, dict[int, Picture]] = {}
        """Submitter -> autocluster -> what its ad shows: of very many submitters few have another job to show."""

    def forget(self, submitter: str) -> None:
        """It has no jobs here any more."""
        self._turns.pop(submitter, None)
        self._pictures.pop(submitter, None)

    def requests(self, submitter: str) -> list[ResourceRequest]:
        """Autoclusters with jobs for which no claim is being asked, in the submitter's order."""
        requests: list[ResourceRequest] = []
        size, crowded = 0, self._requester.limits.crowded(submitter, self._requester.asked.limits)
        room = self._requester.limits.room_to_run(submitter, self._requester.asked.jobs)
        shown, pictures = self._pictures.pop(submitter, {}), dict[int, Picture]()
        for _, job, autocluster, count in self._shown(submitter):
            open_count = min(count - self._requester.asked.jobs[submitter, autocluster], room)
            if (
                open_count > 0
                and not (crowded and self._queue.clusters[job.cluster].limited)
                and self._suit(job)
            ):
                picture = pictures[autocluster] = self._picture(job, shown.get(autocluster))
                nodes, most = node_range(self._queue, job)
                request = ResourceRequest(
                    autocluster=autocluster, count=open_count, ad=picture.ad, nodes=nodes, more=most - nodes
                )
                size += len(_size(request))
                if size > _BYTES and requests:
                    break
                requests.append(request)
                room -= open_count
        if pictures:
            self._pictures[submitter] = pictures
        return requests

    def _picture(self, job: JobId, before: Picture | None) -> Picture:
        queue = self._queue
        if before is not None and before.shows(job, queue):
            return before
        ad = queue.ad(job)
        names = {*significant(ad, queue.significant), *_ALWAYS}
        shown = {name: value for name, value in ad.items() if name in names}
        return Picture(job, queue.jobs[job], queue.significant, shown)

    def _suit(self, job: JobId) -> bool:
        return self._suits is None or self._suits(job)

    def _shown(self, submitter: str) -> list[Request]:
        """
        Of very many requests the most urgent ones, and by turns some of the others: what is never shown never runs.
        """
        requests = self._queue.demand.requests(submitter)
        if len(requests) <= _LIST:
            return requests
        first, others = requests[: _LIST // 2], requests[_LIST // 2 :]
        turn = self._turns[submitter] = (self._turns.get(submitter, 0) + _LIST // 2) % len(others)
        return first + (others[turn:] + others[:turn])[: _LIST // 2]
