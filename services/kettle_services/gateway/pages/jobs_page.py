"""
The pages of the queues and of the history: which jobs there are, in which states, found by filters, grouped, and live.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from kettle.published.services import ATTRIBUTE as SERVICES_ATTRIBUTE
from kettle_services.gateway.pages.job_lists import (
    OF_ALL,
    GroupRow,
    JobColumn,
    JobRow,
    StateCount,
    chosen_columns,
    groups_of,
    question,
    row_of,
    states_of,
)
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.jobs import LIST_HISTORY, LIST_JOBS, Group, Jobs, ListHistory, ListJobs
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route

MOST_GROUPS: Final = 500
"""More than so many on one page nobody reads; the page says how many there are."""
_OF_JOBS: Final = ("cluster", "filter", "since", "until")
"""Filters that counts of the past do not have."""
QUEUE_COLUMNS: Final = (
    JobColumn("owner", "Owner", sort="owner"),
    *OF_ALL,
    JobColumn("since", "In this state since", sort="entered"),
    JobColumn("runs", "Runs", sort="attempts", number=True),
    JobColumn("where", "Where, or why held", attributes=(SERVICES_ATTRIBUTE,)),
)
HISTORY_COLUMNS: Final = (
    JobColumn("owner", "Owner"),
    *OF_ALL,
    JobColumn("left", "Left the queue", sort="left"),
    JobColumn("exit_code", "Exit code", sort="exit_code", number=True),
    JobColumn("wall_time", "Wall time", sort="wall_time", number=True),
    JobColumn("memory", "Memory used, MiB", sort="memory", number=True),
)
QueueColumn = Literal[
    "owner", "state", "command", "batch", "submitted", "cpus", "asked", "priority", "since", "runs", "where"
]
HistoryColumn = Literal[
    "owner", "state", "command", "batch", "submitted", "cpus", "asked", "priority", "left", "exit_code", "wall_time", "memory"
]  # fmt: skip


class ShowJobs(ListJobs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page of the queues."""

    columns: list[QueueColumn] = []
    """None: those that were chosen last."""
    counted: bool = False
    """Count what a filter finds, which tries it on all jobs, also where there are more than one page has."""


class ShowHistory(ListHistory, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page of the history."""

    columns: list[HistoryColumn] = []
    """None: those that were chosen last."""
    counted: bool = False
    """Count what a filter finds, which tries it on all jobs, also where there are more than one page has."""


Wanted: TypeAlias = ShowJobs | ShowHistory
_JOBS_COLUMNS: Final = "kettle_jobs_columns"
_HISTORY_COLUMNS: Final = "kettle_history_columns"


def _subject(asked: Asked, cookie: str) -> LiveSubject:
    """
    Jobs of some owners and clusters.  A filter may tell an owner what others are not told of a job: to them the page is another one.
    """
    wanted: Wanted = asked.parameters
    return LiveSubject(
        owners=frozenset(wanted.owner),
        clusters=frozenset(wanted.cluster),
        choices=cookie,
        public=not wanted.filter or bool(wanted.owner and asked.person.name not in wanted.owner),
    )


JOBS: Final = Page(
    "/jobs",
    "Jobs",
    template="jobs.html",
    parameters=ShowJobs,
    link=Link("Jobs", 2),
    live="jobs_live.html",
    subject=lambda asked: _subject(asked, _JOBS_COLUMNS),
)
HISTORY: Final = Page(
    "/history",
    "History",
    template="jobs.html",
    parameters=ShowHistory,
    link=Link("Jobs", 7),
    live="jobs_live.html",
    subject=lambda asked: _subject(asked, _HISTORY_COLUMNS),
)


class ListOfJobs(msgspec.Struct, frozen=True, kw_only=True):
    """What makes one of the pages."""

    page: Page
    route: Route
    kind: type[ListJobs | ListHistory]
    columns: tuple[JobColumn, ...]
    usual: tuple[str, ...]
    cookie: str
    moment: str
    """What `since` and `until` are about."""
    heading: str


QUEUES: Final = ListOfJobs(
    page=JOBS,
    route=LIST_JOBS,
    kind=ListJobs,
    columns=QUEUE_COLUMNS,
    usual=("owner", "state", "command", "since", "runs", "where"),
    cookie=_JOBS_COLUMNS,
    moment="Submitted",
    heading="Jobs in the queues",
)
PAST: Final = ListOfJobs(
    page=HISTORY,
    route=LIST_HISTORY,
    kind=ListHistory,
    columns=HISTORY_COLUMNS,
    usual=("owner", "state", "command", "left", "exit_code", "wall_time", "memory"),
    cookie=_HISTORY_COLUMNS,
    moment="Left",
    heading="Jobs that have left the queues",
)


class JobsView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    list: ListOfJobs
    asked: Wanted
    states: Sequence[StateCount]
    matching: int | None
    """Jobs that all the filters are true of; None: there are too many to count."""
    groups: Sequence[GroupRow]
    more_groups: int
    """That are not on the page, the smallest ones."""
    rows: Sequence[JobRow]
    columns: Sequence[JobColumn]
    next: str | None
    filtered: bool
    uncounted: str
    """Why there are no counts."""
    queued: bool
    """Whether it is about the queues, where something can be done to jobs."""
    left_out: Sequence[str] = ()
    """Filters that counts of the past do not have."""


class JobsPage:
    """Shows one of them."""

    def __init__(self, questions: Questions, shown: ListOfJobs) -> None:
        self._questions = questions
        self._list = shown

    async def show(self, asked: Asked) -> Shown:
        """Counts of states, and jobs or groups of them."""
        if isinstance(asked.parameters, ShowJobs) and asked.parameters.as_of is not None:
            return await self._past_queues(asked, asked.parameters)
        wanted: Wanted = asked.parameters
        kind = self._list.kind
        columns = chosen_columns(asked, self._list.columns, self._list.usual, self._list.cookie)
        attributes = dict.fromkeys(name for column in columns for name in column.attributes)
        listed = question(kind, wanted, fields=[*attributes, *wanted.fields])
        found = await self._questions.ask(asked, self._list.route, listed, Jobs)
        counts, uncounted = await self._counts(asked, found)
        states = states_of(counts, wanted.state)
        groups = groups_of(found.groups) if isinstance(found.groups, list) else []
        view = JobsView(
            list=self._list,
            asked=wanted,
            states=states,
            matching=None
            if uncounted
            else sum(each.count for each in states if each.chosen or not wanted.state),
            groups=groups[:MOST_GROUPS],
            more_groups=len(groups[MOST_GROUPS:]),
            rows=[row_of(job) for job in found.jobs] if isinstance(found.jobs, list) else (),
            columns=columns,
            next=found.next,
            filtered=any(
                (
                    wanted.owner,
                    wanted.filter,
                    wanted.schedd,
                    wanted.cluster,
                    wanted.since,
                    wanted.until,
                    wanted.state,
                )
            ),
            uncounted=uncounted,
            queued=self._list is QUEUES,
        )
        remembered = {self._list.cookie: "-".join(wanted.columns)} if wanted.columns else {}
        owners = frozenset(row.job.owner for row in view.rows)
        return Shown(view, frames=found.frames, cookies=remembered, owners=owners)

    async def _past_queues(self, asked: Asked, wanted: ShowJobs) -> Shown:
        """Queues of the past as jobs or, by owner, state and access point, as counts."""
        ask, replace = self._questions.ask, msgspec.structs.replace
        kept = ListJobs(as_of=wanted.as_of, owner=wanted.owner, schedd=wanted.schedd)
        by_state = await ask(asked, LIST_JOBS, replace(kept, group_by=["state"]), Jobs)
        left_out = [name for name in _OF_JOBS if getattr(wanted, name)]
        states = states_of({group.key["state"]: group.count for group in by_state.groups or ()}, wanted.state)
        columns = chosen_columns(asked, self._list.columns, self._list.usual, self._list.cookie)
        if wanted.group_by:
            groups: list[Group] = [name for name in wanted.group_by if name != "cluster"] or ["owner"]
            listed = replace(kept, group_by=groups, state=wanted.state)
            wanted = replace(wanted, group_by=groups)
        else:
            attributes = dict.fromkeys(name for column in columns for name in column.attributes)
            listed = question(ListJobs, wanted, fields=[*attributes, *wanted.fields], sort=_by_time(wanted))
        found = await ask(asked, LIST_JOBS, listed, Jobs)
        rows = groups_of(found.groups or ())
        view = JobsView(
            list=self._list,
            asked=wanted,
            states=states,
            matching=sum(each.count for each in states if each.chosen or not wanted.state),
            groups=rows[:MOST_GROUPS],
            more_groups=len(rows[MOST_GROUPS:]),
            rows=[row_of(job) for job in found.jobs] if isinstance(found.jobs, list) else (),
            columns=[replace(each, sort="") if each.sort != "submitted" else each for each in columns],
            next=found.next,
            filtered=bool(wanted.owner or wanted.schedd or wanted.state or left_out),
            uncounted="",
            queued=True,
            left_out=left_out,
        )
        return Shown(view, frames=found.frames, owners=frozenset(row.job.owner for row in view.rows))

    async def _counts(self, asked: Asked, found: Jobs) -> tuple[Mapping[str, int], str]:
        """How many there are in each state, or why that is not known."""
        wanted: Wanted = asked.parameters
        endless = self._list is PAST and not (wanted.since or wanted.cluster)
        if (wanted.filter or endless) and not wanted.counted:
            if isinstance(found.jobs, list) and not found.next and not wanted.page:
                return Counter(job.state for job in found.jobs), ""
            if wanted.filter:
                return {}, "a filter is tried on job after job, and to count all takes long"
            return {}, "to count all that have ever ended takes long: say since when"
        by_state = question(self._list.kind, wanted, state=[], group_by=["state"], page="", fields=[])
        try:
            counted = await self._questions.ask(asked, self._list.route, by_state, Jobs)
        except RequestRefused as refusal:
            if refusal.code != ProblemCode.TOO_SLOW:
                raise
            return {}, str(refusal)
        return {group.key["state"]: group.count for group in counted.groups or ()}, ""


def _by_time(wanted: ShowJobs) -> Literal["submitted", "-submitted"]:
    """The order of a list of the past: what other pages were sorted by is not known of it."""
    return "submitted" if wanted.sort == "submitted" else "-submitted"
