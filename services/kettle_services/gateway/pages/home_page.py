"""The first page: how one's own jobs stand, what has just ended, and the machines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from kettle_services.gateway.pages.job_lists import JobRow, StateCount, row_of, states_of
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.page import FromThePast, Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import COMMAND_ATTRIBUTES
from kettle_wire.rest.claims import LIST_CLAIMS, Claims, ListClaims
from kettle_wire.rest.jobs import LIST_HISTORY, LIST_JOBS, Job, Jobs, ListHistory, ListJobs, State
from kettle_wire.rest.machine_use import LIST_MACHINE_USE, ListMachineUse, MachinesInUse
from kettle_wire.rest.past import GET_WHY, GetWhy, Why
from kettle_wire.rest.pool import LIST_CLUSTERS, Cluster, Clusters, ListClusters

AGAIN_S: Final = 10.0
"""How machines are used, and why a job waits, is asked again after this time, also if nothing has happened to one's own jobs."""

_MOST: Final = 1000
"""Jobs of the past that are looked at one by one."""
_LAST: Final = 8
_HELD: Final = 4
"""So many are shown."""

HOME: Final = Page(
    "/",
    "Home",
    template="home.html",
    parameters=FromThePast,
    link=Link("Jobs", 1),
    live="home_live.html",
    subject=lambda asked: LiveSubject(owners=frozenset({asked.person.name}), again_s=AGAIN_S),
)


class ClusterRow(msgspec.Struct, frozen=True):
    """A cluster, with the parts of its states."""

    cluster: Cluster
    states: Sequence[StateCount]
    count: int
    """In the queue."""
    ended: int


class HomeView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    states: Sequence[StateCount]
    total: int
    clusters: Sequence[ClusterRow]
    more_clusters: bool
    waits: JobRow | None
    """The job that waits longest."""
    why: Why | None
    held: Sequence[JobRow]
    ended: Sequence[JobRow]
    machines: MachinesInUse | None
    """How all of them are used."""
    no_machines: str
    """Why that is not known."""
    queued: Sequence[JobRow] = ()
    """At a moment of the past instead of clusters: the last that were submitted."""
    untold: str = ""
    """Why jobs of the past are not shown: their records are in the archive."""
    by_minute: bool = False
    """Whether counts are those of the minute before the moment, because the jobs are very many."""
    claimed: Mapping[str, int] = {}
    """At a moment of the past instead of machines: by machine how many slots were claimed."""


class HomePage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """What somebody wants to know first, now or at a moment."""
        parameters: FromThePast = asked.parameters
        return await (self._now(asked) if parameters.as_of is None else self._then(asked, parameters.as_of))

    async def _now(self, asked: Asked) -> Shown:
        me, fields = [asked.person.name], [*COMMAND_ATTRIBUTES]
        ask, ask_or_say = self._questions.ask, self._questions.ask_or_say
        counted = await ask(asked, LIST_JOBS, ListJobs(owner=me, group_by=["state"]), Jobs)
        states = states_of({group.key["state"]: group.count for group in counted.groups or ()})
        clusters = await ask(asked, LIST_CLUSTERS, ListClusters(owner=me, limit=_LAST), Clusters)
        waiting = ListJobs(owner=me, state=["idle"], sort="submitted", limit=1, fields=fields)
        idle = (await ask(asked, LIST_JOBS, waiting, Jobs)).jobs or []
        held = ListJobs(owner=me, state=["held"], limit=_HELD, fields=fields)
        ended = ListHistory(owner=me, limit=_LAST, fields=fields)
        machines, no_machines = await ask_or_say(
            asked, LIST_MACHINE_USE, ListMachineUse(limit=1), MachinesInUse
        )
        view = HomeView(
            states=states,
            total=sum(each.count for each in states),
            clusters=await self._rows(asked, clusters.clusters),
            more_clusters=clusters.next is not None,
            waits=row_of(idle[0]) if idle else None,
            why=(await ask_or_say(asked, GET_WHY, GetWhy(id=idle[0].id), Why))[0] if idle else None,
            held=[row_of(job) for job in (await ask(asked, LIST_JOBS, held, Jobs)).jobs or ()],
            machines=machines,
            no_machines=no_machines,
            ended=[row_of(job) for job in (await ask(asked, LIST_HISTORY, ended, Jobs)).jobs or ()],
        )
        return Shown(view, frames=counted.frames)

    async def _then(self, asked: Asked, moment: datetime) -> Shown:
        """Jobs as they were; counts of very many are those of the minute before."""
        mine = ListJobs(owner=[asked.person.name], as_of=moment, limit=_MOST, fields=[*COMMAND_ATTRIBUTES])
        ask, replace = self._questions.ask, msgspec.structs.replace
        found, untold = await self._questions.ask_or_say(asked, LIST_JOBS, mine, Jobs)
        found = found or Jobs(jobs=[])
        queued, whole = found.jobs or [], found.next is None

        async def of_state(state: State) -> Sequence[Job]:
            """In order of submission."""
            if whole:
                return [job for job in reversed(queued) if job.state == state]
            wanted = replace(mine, state=[state], sort="submitted", limit=_HELD)
            return (await ask(asked, LIST_JOBS, wanted, Jobs)).jobs or []

        counts: Mapping[str, int] = Counter(job.state for job in queued)
        if untold or not whole:
            counting = replace(mine, group_by=["state"], limit=ListJobs().limit, fields=[])
            groups = (await ask(asked, LIST_JOBS, counting, Jobs)).groups or ()
            counts = {group.key["state"]: group.count for group in groups}
        idle = (await of_state("idle"))[:1]
        past = ListHistory(owner=mine.owner, as_of=moment, limit=_LAST, fields=mine.fields)
        by_machine = ListClaims(as_of=moment, group_by=["machine"])
        claimed = await ask(asked, LIST_CLAIMS, by_machine, Claims)
        view = HomeView(
            states=states_of(counts),
            total=sum(counts.values()),
            clusters=(),
            more_clusters=False,
            waits=row_of(idle[0]) if idle else None,
            why=None,
            held=[row_of(job) for job in (await of_state("held"))[:_HELD]],
            machines=None,
            no_machines="",
            ended=[row_of(job) for job in (await ask(asked, LIST_HISTORY, past, Jobs)).jobs or ()],
            queued=[row_of(job) for job in queued[:_LAST]],
            by_minute=bool(untold) or not whole,
            untold=untold,
            claimed={group.key["machine"]: group.count for group in claimed.groups or ()},
        )
        return Shown(view, frames=found.frames)

    async def _rows(self, asked: Asked, clusters: Sequence[Cluster]) -> list[ClusterRow]:
        """With how many of their jobs have ended."""
        if not clusters:
            return []
        numbers = sorted({each.cluster for each in clusters})
        past = ListHistory(owner=[asked.person.name], cluster=numbers, group_by=["cluster", "schedd"])
        groups = (await self._questions.ask(asked, LIST_HISTORY, past, Jobs)).groups or ()
        ended = {(group.key["cluster"], group.key["schedd"]): group.count for group in groups}
        return [
            ClusterRow(
                each,
                states_of(each.states),
                count=sum(each.states.values()),
                ended=ended.get((str(each.cluster), each.schedd), 0),
            )
            for each in clusters
        ]
