"""The page of the queues: which jobs there are, in which states, found by filters, grouped, and live."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, get_args

import msgspec

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Expr, Scalar
from kettle_wire.rest.jobs import LIST_JOBS, Job, Jobs, ListJobs, State
from kettle_wire.rest.problem import ProblemCode

ColumnName = Literal[
    "owner", "state", "command", "since", "submitted", "runs", "where", "cpus", "memory", "batch", "priority"
]


class JobColumn(msgspec.Struct, frozen=True):
    """A column that can be chosen."""

    name: str
    title: str
    sort: str = ""
    """The key that lists can be sorted by; empty: none."""
    attributes: tuple[str, ...] = ()
    """Of the ad, which are needed for it."""


COLUMNS: Final = (
    JobColumn("owner", "Owner", sort="owner"),
    JobColumn("state", "State"),
    JobColumn("command", "Command", attributes=("Cmd", "Args", "Arguments")),
    JobColumn("batch", "Batch", attributes=("JobBatchName",)),
    JobColumn("since", "In this state since", sort="entered"),
    JobColumn("submitted", "Submitted", sort="submitted"),
    JobColumn("runs", "Runs", sort="attempts"),
    JobColumn("cpus", "Cores", attributes=("RequestCpus",)),
    JobColumn("memory", "Memory asked", attributes=("RequestMemory",)),
    JobColumn("priority", "Priority", attributes=("JobPrio",)),
    JobColumn("where", "Where, or why held"),
)
_USUAL: Final = ("owner", "state", "command", "since", "runs", "where")
COOKIE: Final = "kettle_jobs_columns"


class ShowJobs(ListJobs, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    columns: Annotated[list[ColumnName], msgspec.Meta(max_length=len(COLUMNS))] = []
    """None: those that were chosen last."""


JOBS: Final = Page(
    "/jobs",
    "Jobs",
    template="jobs.html",
    parameters=ShowJobs,
    link=Link("Jobs", 1),
    live="jobs_live.html",
)


class StateCount(msgspec.Struct, frozen=True):
    """How many jobs are in a state."""

    state: State
    count: int
    start: float
    """Of its part of the bar, in thousandths, and how wide that is."""
    width: float
    chosen: bool


class GroupRow(msgspec.Struct, frozen=True):
    """How many jobs have something in common."""

    key: Mapping[str, str]
    count: int
    width: float
    """Of the greatest, in thousandths."""


class JobRow(msgspec.Struct, frozen=True):
    """A job, with what of its ad is shown."""

    job: Job
    command: str
    values: Mapping[str, str]
    """By name of the attribute; absent: the job has no such one."""


class JobsView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: ShowJobs
    states: Sequence[StateCount]
    total: int
    """In the states that are not filtered."""
    matching: int | None
    """Jobs that all the filters are true of; None: there are too many to count."""
    groups: Sequence[GroupRow]
    rows: Sequence[JobRow]
    columns: Sequence[JobColumn]
    all_columns: Sequence[JobColumn] = COLUMNS
    next: str | None
    filtered: bool
    uncounted: str
    """Why there are no counts."""


class JobsPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def show(self, asked: Asked) -> Shown:
        """Counts of states, and jobs or groups of them."""
        wanted: ShowJobs = asked.parameters
        columns = _columns(wanted, asked)
        attributes = dict.fromkeys(name for column in columns for name in column.attributes)
        listed = _question(wanted, fields=[*attributes, *wanted.fields])
        found = await self._questions.ask(asked, LIST_JOBS, listed, Jobs)
        try:
            by_state = _question(wanted, state=[], group_by=["state"], page="", fields=[])
            counted = await self._questions.ask(asked, LIST_JOBS, by_state, Jobs)
            uncounted = ""
        except RequestRefused as refusal:
            if refusal.code != ProblemCode.TOO_SLOW:
                raise
            counted, uncounted = Jobs(groups=[]), str(refusal)
        states = _states(counted, wanted.state)
        matching = sum(each.count for each in states if each.chosen or not wanted.state)
        view = JobsView(
            asked=wanted,
            states=states,
            total=sum(each.count for each in states),
            matching=None if uncounted else matching,
            groups=_groups(found),
            rows=[_row(job) for job in found.jobs] if isinstance(found.jobs, list) else (),
            columns=columns,
            next=found.next,
            filtered=bool(
                wanted.owner
                or wanted.filter
                or wanted.schedd
                or wanted.cluster
                or wanted.since
                or wanted.until
                or wanted.state
            ),
            uncounted=uncounted,
        )
        remembered = {COOKIE: "-".join(wanted.columns)} if wanted.columns else {}
        return Shown(view, frames=found.frames, cookies=remembered)


def _question(wanted: ShowJobs, **changes: Any) -> ListJobs:
    """What the interface is asked for this page."""
    fields = {name: getattr(wanted, name) for name in ListJobs.__struct_fields__}
    return ListJobs(**{**fields, **changes})


def _row(job: Job) -> JobRow:
    ad = job.attributes or {}
    values = {name: _text(value) for name, value in ad.items()}
    program = values.get("Cmd", "").rpartition("/")[2]
    return JobRow(job, f"{program} {values.get('Arguments', values.get('Args', ''))}".strip(), values)


def _text(value: Scalar) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Expr(expr=text):
            return text
        case _:
            return str(value)


def _columns(wanted: ShowJobs, asked: Asked) -> list[JobColumn]:
    """Those of the address, else those that were chosen last, else the usual ones."""
    known = {column.name for column in COLUMNS}
    remembered = known.intersection(asked.request.cookies.get(COOKIE, "").split("-"))
    chosen = wanted.columns or remembered or _USUAL
    return [column for column in COLUMNS if column.name in chosen]


def _states(counted: Jobs, chosen: Sequence[State]) -> list[StateCount]:
    counts = {group.key["state"]: group.count for group in counted.groups or ()}
    total = sum(counts.values())
    made: list[StateCount] = []
    start = 0.0
    for state in get_args(State):
        count = counts.get(state, 0)
        width = round(1000 * count / total, 1) if total else 0.0
        made.append(StateCount(state, count, round(start, 1), width, state in chosen))
        start += width
    return made


def _groups(found: Jobs) -> list[GroupRow]:
    if not isinstance(found.groups, list):
        return []
    most = max((group.count for group in found.groups), default=0)
    return [GroupRow(group.key, group.count, round(1000 * group.count / most, 1)) for group in found.groups]
