"""Whether a submission may enter the queue."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, cast

import msgspec

from kettle.classad import ClassAdError, parse
from kettle.jobs.concurrency_limits import LimitsError, limits_of
from kettle.jobs.credential_attributes import CREDENTIAL
from kettle.jobs.lower_names import lower_names, remembered_by_names
from kettle.jobs.nodes import MOST_NODES
from kettle.jobs.routed_attributes import AWAITS
from kettle.tasks.nodes import on_node
from kettle.tasks.reading import FOLDED as TASKS
from kettle.tasks.reading import TasksError, read_tasks
from kettle_services.schedd.domain.jobs.factory import asked
from kettle_services.schedd.domain.jobs.universes import CARRIED_OUT
from kettle_services.schedd.domain.negotiation.concurrency_limits import ATTRIBUTE
from kettle_services.schedd.domain.submission import published
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.codes import JobStatus, Universe
from kettle_wire.grid import batch_system
from kettle_wire.session_attributes import MARKS

SET_BY_SCHEDD: Final = frozenset(
    name.lower()
    for name in ("ClusterId", "ProcId", "Owner", "User", "QDate", "GlobalJobId", "JobStatus", "MyType")
)
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_STATUS: Final = "jobstatus"
_MARKS: Final = CREDENTIAL | {AWAITS.lower()}
"""What the schedd adds to submissions for a compute entrypoint."""
_STATUSES: Final = (JobStatus.HELD, Expr("undefined"))
JOB_BYTES: Final = 256 * 1024
"""A job ad travels in many messages, and with other ads in one."""
_NUL: Final = "a value has a NUL in it, which no file, argument or variable can have"
_TOGETHER: Final = 128
"""Rows whose size is looked at together."""
_encode = msgspec.msgpack.Encoder().encode


class Unacceptable(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """Why a submission is refused, in one sentence."""


def check(
    ad: Ad,
    columns: list[str],
    rows: list[list[Scalar]],
    *,
    limit: int,
    grid: bool = False,
    marked: bool = False,
    members: bool = False,
) -> None:
    """
    Raise `Unacceptable` for what must not be recorded.

    `grid`: there is a compute entrypoint for jobs of the grid universe; `marked`: what this has to know was added;
    `members`: they are jobs of an interactive session, and say of which.
    """
    if not rows:
        raise Unacceptable("the submission has no jobs: the queue statement yields no items")
    check_count(len(rows), limit)
    _rectangular(columns, rows)
    size = len(_encode(ad))
    if largest := _largest(rows, JOB_BYTES - size):
        raise Unacceptable(
            f"the ad of a job would take {size + largest:,} bytes, and at most {JOB_BYTES:,} are allowed"
        )
    spelled = _names((*ad, *columns))
    _reserved(ad, columns, rows, spelled, marked=marked)
    if not members:
        _no_members(spelled)
    _expressions(ad.values())
    if ATTRIBUTE in spelled:
        _limits(_values(spelled[ATTRIBUTE], ad, columns, rows))
    if TASKS in spelled:
        parallel = ad.get(spelled.get("jobuniverse", "")) == Universe.PARALLEL
        _tasks(_values(spelled[TASKS], ad, columns, rows), nodes=parallel)
        _fit_for_tasks(ad, spelled)
    _all_published(ad, columns, rows, spelled)
    _all_expressions(rows)
    _pace(ad, columns)
    programs = set(map(_is_text, _values("Cmd", ad, columns, rows)))
    if programs != {True}:
        raise Unacceptable("the submission names no executable (attribute Cmd)")
    universe = spelled.get("jobuniverse", "")
    _universes(_values(universe, ad, columns, rows), grid=grid)
    if ad.get(universe) in {Universe.PARALLEL, Universe.GRID} or universe in columns:
        _nodes(ad, columns, rows, universe)
        _batch_systems(ad, columns, rows, universe, spelled.get("gridresource", ""))


def _is_text(value: Scalar) -> bool:
    return isinstance(value, str) and value != ""


def _rectangular(columns: list[str], rows: list[list[Scalar]]) -> None:
    if set(map(len, rows)) != {len(columns)}:
        raise Unacceptable(
            f"a row of the submission does not have {len(columns)} values, one for each column"
        )
    if len(set(columns)) != len(columns):
        raise Unacceptable("a column stands twice in the submission")


def _no_members(spelled: Mapping[str, str]) -> None:
    if names := MARKS & spelled.keys():
        raise Unacceptable(
            f"the attribute {spelled[min(names)]} is of jobs of interactive sessions alone (kettle session)"
        )


def _values(name: str, ad: Ad, columns: list[str], rows: list[list[Scalar]]) -> Iterator[Scalar]:
    """What jobs say of an attribute, spelled as it is in the submission."""
    if name in ad:
        yield ad[name]
    if name in columns:
        place = columns.index(name)
        yield from (row[place] for row in rows)


def check_count(jobs: int, limit: int) -> None:
    """Raise `Unacceptable` for more jobs than one submission may have."""
    if jobs > limit:
        raise Unacceptable(
            f"the submission has {jobs} jobs, but at most {limit} may be submitted at once; "
            "submit them as several clusters, or with max_idle, which lets more in, little by little"
        )


def without_owner(ad: Ad, owner: str) -> Ad:
    """The ad without its Owner, which may say who submits; raises Unacceptable for anybody else."""
    found = lower_names(ad).get("owner")
    if found is None:
        return ad
    if ad[found] != owner:
        raise Unacceptable(
            f"you are {owner}: jobs cannot be submitted with Owner = {ad[found]!r}; leave that line out"
        )
    return {name: value for name, value in ad.items() if name != found}


def with_user(ad: Ad, owner: str, domain: str) -> Ad:
    """
    The ad with its User, as HTCondor spells it: `ada@example.org`; who is charged is known by other attributes.

    `check` lets no User in: it follows from who sent the command.
    """
    return {**ad, "User": f"{owner}@{domain}"}


def check_values(ad: Ad) -> None:
    """Raise `Unacceptable` for values that no job can have."""
    _expressions(ad.values())
    _limits(value for name, value in ad.items() if name.lower() == ATTRIBUTE)
    _tasks(value for name, value in ad.items() if name.lower() == TASKS)
    for name, value in ad.items():
        if name.lower() in published.ATTRIBUTES:
            _published(name, [value])


def _all_published(ad: Ad, columns: list[str], rows: list[list[Scalar]], spelled: Mapping[str, str]) -> None:
    """What all jobs of a submission say of their services."""
    for name in published.ATTRIBUTES & spelled.keys():
        _published(spelled[name], _values(spelled[name], ad, columns, rows))


def _published(name: str, values: Iterable[Scalar | Expr]) -> None:
    if trouble := published.trouble(name, values):
        raise Unacceptable(trouble)


def _reserved(
    ad: Ad, columns: list[str], rows: list[list[Scalar]], spelled: Mapping[str, str], *, marked: bool
) -> None:
    """What the schedd sets itself, but for what may be said of it."""
    if not marked and (names := _MARKS & spelled.keys()):
        raise Unacceptable(f"the attribute {spelled[min(names)]} is set by the schedd, not by a submission")
    if _STATUS in spelled:
        _statuses(ad, columns, rows)


def _statuses(ad: Ad, columns: list[str], rows: list[list[Scalar]]) -> None:
    """All that a submission may say of its jobs' status is that they are on hold."""
    said = [value for name, value in ad.items() if name.lower() == _STATUS]
    places = [place for place, name in enumerate(columns) if name.lower() == _STATUS]
    said += [row[place] for place in places for row in rows]
    if any(value not in _STATUSES for value in said):
        raise Unacceptable(
            "the attribute JobStatus is set by the schedd; a submission may only say 5, on hold"
        )


def _pace(ad: Ad, columns: list[str]) -> None:
    if asked(columns):
        raise Unacceptable("max_materialize and max_idle are the same for all jobs of a submission")
    if not asked(ad):
        return
    for name, value in ad.items():
        if asked([name]) and (type(value) is not int or value < 1):
            raise Unacceptable(f"{name} is a number of jobs, at least 1")


def _universes(values: Iterable[Scalar], *, grid: bool) -> None:
    found = [*values]
    if Universe.GRID in found and not grid:
        raise Unacceptable(
            "jobs of the grid universe (JobUniverse 9) are for batch systems, and this access point has no compute entrypoint"
        )
    if any(type(value) is not int or value not in CARRIED_OUT for value in found):
        raise Unacceptable(
            "only jobs of the vanilla, parallel, grid, local and scheduler universes (JobUniverse 5, 11, 9, 12 and 7) can be run here"
        )


def _batch_systems(
    ad: Ad, columns: list[str], rows: list[list[Scalar]], universe: str, resource: str
) -> None:
    """A job of the grid universe says in which batch system it runs."""
    shared = {name: ad.get(name) for name in (universe, resource)}
    for row in rows if universe in columns or resource in columns else [[]]:
        own = shared | dict(zip(columns, row, strict=False))
        if own[universe] == Universe.GRID and not batch_system(own[resource]):
            raise Unacceptable(
                "a job of the grid universe says where it runs: grid_resource = batch NAME, a batch system of the entrypoint"
            )


def _nodes(ad: Ad, columns: list[str], rows: list[list[Scalar]], universe: str) -> None:
    """A job of the parallel universe says on how many slots it runs, and is not run on fewer."""
    shared = {name: ad.get(name) for name in (universe, "MinHosts", "MaxHosts")}
    for row in rows:
        own = shared | dict(zip(columns, row, strict=True))
        least, most = own["MinHosts"], own["MaxHosts"]
        if own[universe] == Universe.PARALLEL and (
            type(least) is not int or type(most) is not int or not 1 <= least <= most <= MOST_NODES
        ):
            raise Unacceptable(
                "a job of the parallel universe has MinHosts and MaxHosts, the least and the most nodes on which it runs, "
                f"from 1 to {MOST_NODES}"
            )


def _limits(values: Iterable[Scalar]) -> None:
    """What is no expression; the negotiator sees to those."""
    try:
        for text in {value for value in values if isinstance(value, str)}:
            limits_of(text)
    except LimitsError as error:
        raise Unacceptable(f"ConcurrencyLimits: {error}") from error


def _tasks(values: Iterable[Scalar], *, nodes: bool = False) -> None:
    """What jobs of several tasks say of them; `nodes`: the jobs are of the parallel universe."""
    try:
        for value in dict.fromkeys(values):
            listed = read_tasks(value)
            if nodes:
                on_node(listed, 0)
    except TasksError as error:
        raise Unacceptable(str(error)) from error


def _fit_for_tasks(ad: Ad, spelled: Mapping[str, str]) -> None:
    """What a job of several tasks says of itself besides."""
    if "successcheckpointexitcode" in spelled:
        raise Unacceptable("a job of several tasks makes no checkpoints: leave checkpoint_exit_code out")
    said = {name: ad.get(spelled.get(name, "")) for name in ("shouldtransferfiles", "jobuniverse")}
    if str(said["shouldtransferfiles"]).upper() == "NO":
        raise Unacceptable(
            "tasks share a sandbox, which a job has whose files are transferred (ShouldTransferFiles)"
        )
    if said["jobuniverse"] not in {None, Universe.VANILLA, Universe.PARALLEL}:
        raise Unacceptable(
            "a job of several tasks runs on machines: it is of the vanilla or parallel universe (JobUniverse 5 or 11)"
        )


@remembered_by_names
def _names(names: tuple[str, ...]) -> Mapping[str, str]:
    """
    How each attribute is spelled, by its lower-case name; most submissions have the same names as one before.
    """
    spelled = {name.lower(): name for name in names}
    for name in names:
        if not _NAME.match(name):
            raise Unacceptable(f"'{name}' is not the name of an attribute")
        if name.lower() in SET_BY_SCHEDD - {_STATUS}:
            raise Unacceptable(f"the attribute {name} is set by the schedd, not by a submission")
        if (other := spelled[name.lower()]) != name:
            raise Unacceptable(f"the attribute {name} is there as {other}, too, which is the same name")
    return spelled


def _largest(rows: Sequence[list[Scalar]], room: int) -> int:
    """How many bytes the largest row takes, if that is more than there is room for; else 0."""
    found = 0
    for start in range(0, len(rows), _TOGETHER):
        some = rows[start : start + _TOGETHER]
        if len(_encode(some)) > room:
            found = max(found, *(len(_encode(row)) for row in some), 0)
    return found if found > room else 0


def _all_expressions(rows: Sequence[list[Scalar]]) -> None:
    """
    All expressions of the rows, in fewer steps than by `_expressions` of each: there may be a million of them.
    """
    kinds = set(map(type, chain.from_iterable(rows)))
    if kinds <= {bool, int}:
        return
    if kinds == {str}:
        if "\0" in "".join(cast("Iterable[str]", chain.from_iterable(rows))):
            raise Unacceptable(_NUL)
        return
    for row in rows:
        _expressions(row)


def _expressions(values: Iterable[Scalar]) -> None:
    for value in values:
        kind = type(value)  # of fifty attributes of each submission: isinstance takes twice as long
        if kind is str:
            if "\0" in cast("str", value):
                raise Unacceptable(_NUL)
        elif kind is float:
            if not math.isfinite(cast("float", value)):
                raise Unacceptable("a value is no finite number")
        elif isinstance(value, Expr) and (complaint := _complaint(value.expr)):
            raise Unacceptable(f"the expression '{value.expr}' cannot be read: {complaint}")


@lru_cache(maxsize=4096)
def _complaint(text: str) -> str:
    try:
        parse(text)
    except ClassAdError as error:
        return str(error)
    return ""
