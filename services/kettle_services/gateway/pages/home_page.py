"""The first page: how one's own jobs stand, what has just ended, and the machines."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle_services.gateway.pages.job_lists import JobRow, StateCount, row_of, states_of
from kettle_services.gateway.pages.page import FromThePast, Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.jobs import LIST_HISTORY, LIST_JOBS, Jobs, ListHistory, ListJobs
from kettle_wire.rest.past import GET_WHY, GetWhy, Why
from kettle_wire.rest.pool import LIST_CLUSTERS, Cluster, Clusters, ListClusters

HOME: Final = Page(
    "/",
    "Home",
    template="home.html",
    parameters=FromThePast,
    link=Link("Jobs", 1),
    live="home_live.html",
    only_now=True,
)
_ATTRIBUTES: Final = ["Cmd", "Args", "Arguments"]


class ClusterRow(msgspec.Struct, frozen=True):
    """A cluster, with the parts of its states."""

    cluster: Cluster
    states: Sequence[StateCount]
    count: int


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


class HomePage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """What somebody wants to know first."""
        me = [asked.person.name]
        ask = self._questions.ask
        counted = await ask(asked, LIST_JOBS, ListJobs(owner=me, group_by=["state"]), Jobs)
        states = states_of({group.key["state"]: group.count for group in counted.groups or ()})
        clusters = await ask(asked, LIST_CLUSTERS, ListClusters(owner=me, limit=8), Clusters)
        waiting = ListJobs(owner=me, state=["idle"], sort="submitted", limit=1, fields=_ATTRIBUTES)
        idle = (await ask(asked, LIST_JOBS, waiting, Jobs)).jobs or []
        held = ListJobs(owner=me, state=["held"], limit=4, fields=_ATTRIBUTES)
        ended = ListHistory(owner=me, limit=8, fields=_ATTRIBUTES)
        view = HomeView(
            states=states,
            total=sum(each.count for each in states),
            clusters=[_row(each) for each in clusters.clusters],
            more_clusters=clusters.next is not None,
            waits=row_of(idle[0]) if idle else None,
            why=await self._why(asked, idle[0].id) if idle else None,
            held=[row_of(job) for job in (await ask(asked, LIST_JOBS, held, Jobs)).jobs or ()],
            ended=[row_of(job) for job in (await ask(asked, LIST_HISTORY, ended, Jobs)).jobs or ()],
        )
        return Shown(view, frames=counted.frames)

    async def _why(self, asked: Asked, job: str) -> Why | None:
        """None: nobody knows, or it has just gone; its own page says which."""
        try:
            return await self._questions.ask(asked, GET_WHY, GetWhy(id=job), Why)
        except RequestRefused:
            return None


def _row(cluster: Cluster) -> ClusterRow:
    return ClusterRow(cluster, states_of(cluster.states), sum(cluster.states.values()))
