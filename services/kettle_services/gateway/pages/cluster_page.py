"""The page of a cluster: how far it is, and its failures by cause."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec

from kettle_services.gateway.pages.job_lists import JobRow, StateCount, row_of, states_of
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import COMMAND_ATTRIBUTES
from kettle_services.gateway.rest.failures import words_of_signal
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.jobs import LIST_HISTORY, LIST_JOBS, At, Job, Jobs, ListHistory, ListJobs
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Moment

_MOST: Final = 1000
"""Jobs whose causes are looked at."""
_FIRST: Final = 10
"""Jobs that are shown."""
_FIELDS: Final = [*COMMAND_ATTRIBUTES, "JobBatchName"]


class ShowCluster(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(@[^\x00]{1,256})?$", examples=["12", "12@schedd"])]
    """`CLUSTER` or `CLUSTER@SCHEDD`."""
    at_least: At | None = None
    """Wait until this is visible."""
    as_of: Moment | None = None


def _subject(asked: Asked) -> LiveSubject:
    return LiveSubject(clusters=frozenset({int(asked.parameters.id.partition("@")[0])}))


CLUSTER: Final = Page(
    "/clusters/{id}",
    "Cluster",
    template="cluster.html",
    parameters=ShowCluster,
    live="cluster_live.html",
    subject=_subject,
)


class Cause(msgspec.Struct, frozen=True):
    """Jobs that were held, or failed, for one reason."""

    what: str
    count: int
    first: datetime
    last: datetime
    example: Job


class ClusterView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    cluster: int
    schedd: str
    owner: str
    batch: str
    """Its name, if it has one."""
    submitted: datetime
    states: Sequence[StateCount]
    total: int
    ended: int
    causes: Sequence[Cause]
    looked_at: int
    """Jobs that were held or ended badly among which causes were searched; fewer than all if these are very many."""
    first: Sequence[JobRow]
    cut: bool = False
    """Whether there were more jobs in the queue then than are counted."""


class _Which(msgspec.Struct, frozen=True, kw_only=True):
    """Of which jobs the page is."""

    cluster: list[int]
    schedd: list[str]
    as_of: datetime | None


class _Queued(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown of those in the queue."""

    counts: Mapping[str, int]
    """By state."""
    first: Sequence[Job]
    held: Sequence[Job]
    frames: Mapping[str, int]
    cut: bool = False


class ClusterPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """Counts in the queue and in the history, causes, and the first jobs, now or at a moment."""
        wanted: ShowCluster = asked.parameters
        number, _, schedd = wanted.id.partition("@")
        which = _Which(cluster=[int(number)], schedd=[schedd] if schedd else [], as_of=wanted.as_of)
        queued = await (self._queued if wanted.as_of is None else self._queued_then)(asked, which)
        left = await self._left(asked, which, group_by=["state"])
        counts = Counter(queued.counts)
        counts.update({group.key["state"]: group.count for group in left.groups or ()})
        some = queued.first or (await self._left(asked, which, limit=_FIRST, fields=_FIELDS)).jobs or []
        if not some:
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                f"there is no cluster {wanted.id}, neither in a queue nor in the history"
                if wanted.as_of is None
                else f"there was no cluster {wanted.id} at that time: it was submitted later",
            )
        failed = (await self._left(asked, which, filter="ExitCode =!= 0", limit=_MOST)).jobs or []
        rows = [row_of(job) for job in some]
        view = ClusterView(
            cluster=int(number),
            schedd=schedd or some[0].schedd,
            owner=some[0].owner,
            batch=rows[0].values.get("JobBatchName", ""),
            submitted=some[0].submitted,
            states=states_of(counts),
            total=sum(counts.values()),
            ended=sum(group.count for group in left.groups or ()),
            causes=_causes([*queued.held, *failed]),
            looked_at=len(queued.held) + len(failed),
            first=rows,
            cut=queued.cut,
        )
        return Shown(view, title=f"Cluster {number}", frames=queued.frames)

    async def _queued(self, asked: Asked, which: _Which) -> _Queued:
        async def listed(**more: object) -> Jobs:
            parameters = ListJobs(cluster=which.cluster, schedd=which.schedd)
            parameters = msgspec.structs.replace(parameters, **more)
            return await self._questions.ask(asked, LIST_JOBS, parameters, Jobs)

        counted = await listed(group_by=["state"], at_least=asked.parameters.at_least)
        return _Queued(
            counts={group.key["state"]: group.count for group in counted.groups or ()},
            first=(await listed(limit=_FIRST, sort="entered", fields=_FIELDS)).jobs or [],
            held=(await listed(state=["held"], limit=_MOST)).jobs or [],
            frames=counted.frames,
        )

    async def _queued_then(self, asked: Asked, which: _Which) -> _Queued:
        """By the jobs themselves: clusters of the past are counted nowhere."""
        parameters = ListJobs(
            cluster=which.cluster,
            schedd=which.schedd,
            as_of=which.as_of,
            sort="submitted",
            limit=_MOST,
            fields=_FIELDS,
        )
        found = await self._questions.ask(asked, LIST_JOBS, parameters, Jobs)
        jobs = found.jobs or []
        return _Queued(
            counts=Counter(job.state for job in jobs),
            first=jobs[:_FIRST],
            held=[job for job in jobs if job.state == "held"],
            frames=found.frames,
            cut=found.next is not None,
        )

    async def _left(self, asked: Asked, which: _Which, **more: object) -> Jobs:
        parameters = ListHistory(cluster=which.cluster, schedd=which.schedd, as_of=which.as_of)
        parameters = msgspec.structs.replace(parameters, **more)
        return await self._questions.ask(asked, LIST_HISTORY, parameters, Jobs)


def _causes(jobs: Sequence[Job]) -> list[Cause]:
    """By what is said of them, the most frequent first."""
    groups: defaultdict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[_cause(job)].append(job)
    made = [
        Cause(what, len(each), min(map(_when, each)), max(map(_when, each)), max(each, key=_when))
        for what, each in groups.items()
    ]
    return sorted(made, key=lambda each: -each.count)


def _cause(job: Job) -> str:
    if job.state == "held":
        return f"held: {job.hold_reason or 'no reason was given'}"
    if job.state == "removed":
        return "removed"
    if job.exit_code is not None:
        return f"exited with code {job.exit_code}"
    return f"ended by {words_of_signal(job.exit_signal)}"


def _when(job: Job) -> datetime:
    return job.left or job.entered or job.submitted
