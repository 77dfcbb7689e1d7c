"""The page of a cluster: how far it is, and its failures by cause."""

from collections import defaultdict
from collections.abc import Sequence
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
    only_now=True,
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


class ClusterPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """Counts in the queue and in the history, causes, and the first jobs."""
        number, _, schedd = asked.parameters.id.partition("@")
        which: dict[str, list[int] | list[str]] = {"cluster": [int(number)]}
        if schedd:
            which["schedd"] = [schedd]

        async def queued(**more: object) -> Jobs:
            parameters = msgspec.convert({**which, **more}, ListJobs)
            return await self._questions.ask(asked, LIST_JOBS, parameters, Jobs)

        async def past(**more: object) -> Jobs:
            parameters = msgspec.convert({**which, **more}, ListHistory)
            return await self._questions.ask(asked, LIST_HISTORY, parameters, Jobs)

        now = await queued(group_by=["state"], at_least=asked.parameters.at_least)
        then = await past(group_by=["state"])
        counts = {group.key["state"]: 0 for group in [*(now.groups or ()), *(then.groups or ())]}
        for group in [*(now.groups or ()), *(then.groups or ())]:
            counts[group.key["state"]] += group.count
        fields = [*COMMAND_ATTRIBUTES, "JobBatchName"]
        first = (await queued(limit=10, sort="entered", fields=fields)).jobs or []
        some = first or (await past(limit=10, fields=fields)).jobs or []
        if not some:
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                f"there is no cluster {asked.parameters.id}, neither in a queue nor in the history",
            )
        held = (await queued(state=["held"], limit=_MOST)).jobs or []
        failed = (await past(filter="ExitCode =!= 0", limit=_MOST)).jobs or []
        rows = [row_of(job) for job in some]
        total, ended = sum(counts.values()), sum(group.count for group in then.groups or ())
        view = ClusterView(
            cluster=int(number),
            schedd=schedd or some[0].schedd,
            owner=some[0].owner,
            batch=rows[0].values.get("JobBatchName", ""),
            submitted=some[0].submitted,
            states=states_of(counts),
            total=total,
            ended=ended,
            causes=_causes([*held, *failed]),
            looked_at=len(held) + len(failed),
            first=rows,
        )
        return Shown(view, title=f"Cluster {number}", frames=now.frames)


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
