"""What pages with lists of jobs have in common: columns that are chosen, and rows."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, get_args

import msgspec

from kettle_services.gateway.pages.job_services import services_of
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import COMMAND_ATTRIBUTES, short_command, value_text
from kettle_wire.rest.jobs import GroupCount, Job, State


class JobColumn(msgspec.Struct, frozen=True):
    """A column that can be chosen."""

    name: str
    title: str
    sort: str = ""
    """The key that lists can be sorted by; empty: none."""
    attributes: tuple[str, ...] = ()
    """Of the ad, which are needed for it."""
    number: bool = False


OF_ALL: Final = (
    JobColumn("state", "State"),
    JobColumn("command", "Command", attributes=COMMAND_ATTRIBUTES),
    JobColumn("batch", "Batch", attributes=("JobBatchName",)),
    JobColumn("submitted", "Submitted", sort="submitted"),
    JobColumn("cpus", "Cores", attributes=("RequestCpus",), number=True),
    JobColumn("asked", "Memory asked, MiB", attributes=("RequestMemory",), number=True),
    JobColumn("priority", "Priority", attributes=("JobPrio",), number=True),
)
"""Columns that lists of the queues and of the history can have."""


class JobRow(msgspec.Struct, frozen=True):
    """A job, with what of its ad is shown."""

    job: Job
    command: str
    values: Mapping[str, str]
    """By name of the attribute; absent: the job has no such one."""
    services: Sequence[tuple[str, str]] = ()
    """What it publishes, each with the path of its pages."""


class StateCount(msgspec.Struct, frozen=True):
    """How many jobs are in a state."""

    state: State
    count: int
    start: float
    """Of its part of a bar, in thousandths, and how wide that is."""
    width: float
    chosen: bool = False


class GroupRow(msgspec.Struct, frozen=True):
    """How many jobs have something in common."""

    key: Mapping[str, str]
    count: int
    width: float
    """Of the greatest, in thousandths."""


def row_of(job: Job) -> JobRow:
    """A row of a list."""
    values = {name: value_text(value) for name, value in (job.attributes or {}).items()}
    services = services_of(job, job.attributes or {}) if job.state == "running" else ()
    return JobRow(job, short_command(job.attributes or {}), values, services)


def chosen_columns(
    asked: Asked, columns: Sequence[JobColumn], usual: Sequence[str], cookie: str
) -> list[JobColumn]:
    """What the address names, else what was chosen last, else the usual ones."""
    known = {column.name for column in columns}
    remembered = known.intersection(asked.request.cookies.get(cookie, "").split("-"))
    wanted = asked.parameters.columns or remembered or usual
    return [column for column in columns if column.name in wanted]


def states_of(counts: Mapping[str, int], chosen: Iterable[str] = ()) -> list[StateCount]:
    """All states, with their parts of a bar."""
    total = sum(counts.values())
    chosen = set(chosen)
    made: list[StateCount] = []
    start = 0.0
    for state in get_args(State):
        count = counts.get(state, 0)
        width = round(1000 * count / total, 1) if total else 0.0
        made.append(StateCount(state, count, round(start, 1), width, state in chosen))
        start += width
    return made


def groups_of(groups: Sequence[GroupCount]) -> list[GroupRow]:
    """Groups, with bars as long as they are large."""
    most = max((group.count for group in groups), default=1)
    return [GroupRow(group.key, group.count, round(1000 * group.count / most, 1)) for group in groups]


def question(kind: type[Any], wanted: msgspec.Struct, **changes: Any) -> Any:
    """What the interface is asked for a page whose parameters are more than its own."""
    return kind(**{**{name: getattr(wanted, name) for name in kind.__struct_fields__}, **changes})
