"""Makes the jobs of clusters with late materialization, and pauses, resumes and ends that on request."""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from kettle.jobs import job_ad
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.jobs import factory
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.queue.fold import factory_stream
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.commands.schedd import Act, FactoryOutcome, Outcome, Select, Unmade
from kettle_wire.events import Event, FactoryEvent, FactoryMaterialized
from kettle_wire.jobs import JobId

_SLICE: Final = 500
"""Jobs that are made before other tasks run."""
_FLOOR_S: Final = 0.01
"""Between two looks: jobs that end at about the same time are replaced by one event."""
_EACH_S: Final = 0.0001
"""The time for each cluster that is checked, which takes about a tenth of it."""


class Factories:
    """Looks after the clusters of one queue of which jobs are still to be made."""

    def __init__(self, recorder: QueueRecorder, settings: ScheddSettings) -> None:
        self._recorder = recorder
        self._queue = recorder.queue
        self._settings = settings
        self._limits = QueueLimits(recorder.queue, settings)
        self._last = 0
        self._news = asyncio.Event()
        self._news.set()

    def on_event(self, event: Event) -> None:
        """Something was recorded, so there may be room."""
        if self._queue.unmade and not isinstance(event, FactoryMaterialized):
            self._news.set()

    async def materialize_jobs(self) -> None:
        """Make jobs whenever there is room for some; never returns."""
        while True:
            await self._news.wait()
            self._news.clear()
            await self.materialize_now()
            await asyncio.sleep(max(_FLOOR_S, _EACH_S * len(self._queue.unmade)))

    async def materialize_now(self) -> None:
        """
        Make all jobs that there is room for now: a slice of each cluster by turns, so that none takes all the room.
        """
        pending = deque(self._by_turns())
        while pending:
            number = pending.popleft()
            if room := self._room(number):
                made = self._queue.clusters[number].made
                event = FactoryMaterialized(
                    cluster=number, owner=self._owner(number), first=made, count=min(room, _SLICE)
                )
                await self._recorder.record([(factory_stream(number), event)])
                self._last = number
                pending.append(number)

    def _by_turns(self) -> list[int]:
        """Clusters of which jobs are to be made, beginning after the one that had a turn last."""
        numbers = sorted(self._queue.unmade)
        place = bisect_right(numbers, self._last)
        return numbers[place:] + numbers[:place]

    def _room(self, number: int) -> int:
        found = self._queue.factory(number)
        if found is None:
            return 0  # it was closed meanwhile
        cluster = self._queue.clusters[number]
        room = min(
            found.room(present=cluster.present, waiting=cluster.waiting),
            self._settings.max_jobs_per_submission - cluster.present,
            self._limits.room_in_queue(self._owner(number)),
        )
        return max(room, 0)

    def _owner(self, number: int) -> str:
        return self._queue.clusters[number].submitted.owner

    # -- commands of people ---------------------------------------------------------------------------------------

    def selected(self, select: Select, meets: Callable[[Ad], bool] | None) -> Iterator[int]:
        """
        The clusters of a selection of which jobs are still to be made; nobody means them who lists single jobs.
        """
        for number in sorted(self._queue.unmade):
            named = number in select.clusters or self._owner(number) in select.owners
            everything = not (select.jobs or select.clusters or select.owners)
            if (named or everything) and (meets is None or meets(self._shared(number))):
                yield number

    def _shared(self, number: int) -> Ad:
        """What all jobs of a cluster have in common, before they are made."""
        cluster = self._queue.clusters[number]
        ad = job_ad(cluster.submitted, cluster.at, 0, schedd=self._queue.schedd)
        own = {name.lower() for name in (*cluster.submitted.columns, "ProcId", "GlobalJobId", "JobStatus")}
        return {name: value for name, value in ad.items() if name.lower() not in own}

    def unmade(self, select: Select) -> list[Unmade]:
        """How far the clusters of a selection are, whatever its constraint."""
        return [self._unmade(number) for number in self.selected(select, None)]

    def _unmade(self, number: int) -> Unmade:
        cluster = self._queue.clusters[number]
        paused = cluster.factory.paused if cluster.factory is not None else factory.RUNS
        return Unmade(number, self._owner(number), cluster.made, cluster.size, paused)

    def expects(self, job: JobId) -> bool:
        """Whether the job is in the queue, or will be."""
        made = self._queue.factory(job.cluster)
        return job in self._queue.jobs or (made is not None and made.made <= job.proc < made.size)

    def why_not(self, number: int) -> str:
        """Why more jobs of a cluster are not in the queue yet."""
        one = self._unmade(number)
        how = "; ".join(self._in_the_way(number)) or "the others follow at once"
        return f"{one.made} of the {one.total} jobs of cluster {number} are made; {how}"

    def _in_the_way(self, number: int) -> Iterator[str]:
        """What keeps the others out of the queue now."""
        found, cluster = self._queue.factory(number), self._queue.clusters[number]
        if found is None:
            return
        if found.paused:
            yield f"somebody has stopped it; to go on: kettle release {number}"
            return
        if 0 <= found.max_idle <= cluster.waiting:
            yield (
                f"the others follow when fewer than {found.max_idle} are idle or held (max_idle; {cluster.waiting} are now); "
                f"kettle edit {number} max_idle=N changes it"
            )
        if 0 <= found.limit <= cluster.present:
            yield (
                f"the others follow when fewer than {found.limit} are in the queue (max_materialize; {cluster.present} are "
                f"now); kettle edit {number} max_materialize=N changes it"
            )
        if cluster.present >= (most := self._settings.max_jobs_per_submission):
            yield f"a cluster may have {most} jobs in the queue (max_jobs_per_submission)"
        if not self._limits.room_in_queue(self._owner(number)):
            yield (
                f"there is no room for more in the queue (max_jobs_per_owner {self._settings.max_jobs_per_owner}, "
                f"max_jobs_submitted {self._settings.max_jobs_submitted or 'unlimited'})"
            )

    def act(self, number: int, request: Act, *, person: str, reason: str) -> FactoryOutcome:
        """Stop, resume or end the making of a cluster's jobs."""
        found = self._queue.factory(number)
        if found is None:
            return FactoryOutcome(number, "already_done", 0)
        outcome: Outcome = "done"
        if not may_manage(person, self._owner(number), self._settings.queue_super_users):
            outcome = "denied"
        elif events := self._decided(number, found, request, person=person, reason=reason):
            self._recorder.record([(factory_stream(number), event) for event in events])
        else:
            outcome = "bad_status" if request.action == "release" else "already_done"
        return FactoryOutcome(number, outcome, found.unmade)

    def _decided(
        self, number: int, found: Factory, request: Act, *, person: str, reason: str
    ) -> list[FactoryEvent]:
        match request.action:
            case "hold":
                return [*factory.paused(number, found, reason=reason, by=person)]
            case "release":
                return [*factory.resumed(number, found, reason=reason, by=person)]
            case "remove":
                return [*factory.closed(number, self._owner(number), found, reason=reason, by=person)]
            case _:
                return []  # the others are about jobs that run
