"""
The statements that list jobs.

Pure.  A list is read along its order, from the place where the page before has ended: no row is counted or skipped to
get there, and rows that come or go do not move the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeAlias

import asyncpg
import msgspec

from kettle.projections.jobs import HISTORY, QUEUE, Searchable, prefilter
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.cluster_verdicts import Narrowing
from kettle_services.gateway.rest.filters import AdFilter
from kettle_services.gateway.rest.job_rows import NUMBERS, SCHEDD
from kettle_services.gateway.rest.page_tokens import RowPlace
from kettle_wire.events import JobEdited, JobTold
from kettle_wire.rest.jobs import Group, ListHistory, ListJobs

_KEY: Final = "shard, cluster, proc"
_KEY_TYPES: Final = ("text", "integer", "integer")


class Order(msgspec.Struct, frozen=True):
    """A column by which a list may be sorted."""

    column: str
    kind: str
    """Its type in the database."""
    nullable: bool = False
    """Rows without a value come last."""


class JobTable(msgspec.Struct, frozen=True):
    """A table of jobs."""

    name: str
    columns: str
    moment: str
    """The column that `since` and `until` are about."""
    searchable: Searchable
    orders: Mapping[str, Order]


EXIT_SIGNAL: Final = """CASE WHEN search @> '{"exitbysignal": 1}' THEN substring(search->>'exitsignal' FROM '^[0-9]{1,9}$')::integer END"""
"""Attributes can be edited: what is no number of a signal is none."""
LIVE: Final = JobTable(
    "jobs.live",
    f"{_KEY}, owner, status, submitted_at, entered_at, attempts, slot, assigned_at, hold_reason",
    "submitted_at",
    QUEUE,
    {
        "submitted": Order("submitted_at", "timestamptz"),
        "entered": Order("entered_at", "timestamptz"),
        "attempts": Order("attempts", "integer"),
        "owner": Order("owner", "text"),
    },
)
PAST: Final = JobTable(
    "jobs.history",
    f"{_KEY}, owner, status, submitted_at, left_at, frame, exit_code, {EXIT_SIGNAL} AS exit_signal, wall_time, memory, queued, started",
    "left_at",
    HISTORY,
    {
        "left": Order("left_at", "timestamptz"),
        "submitted": Order("queued", "bigint", nullable=True),
        "started": Order("started", "bigint", nullable=True),
        "wall_time": Order("wall_time", "double precision", nullable=True),
        "memory": Order("memory", "bigint", nullable=True),
        "exit_code": Order("exit_code", "bigint", nullable=True),
    },
)

MORE_TRIED: Final = 1024
"""Rows of the second statement whose rows a filter is tried on, if those of the first were not enough; of the third all others."""
Listed: TypeAlias = ListJobs | ListHistory
_Put: TypeAlias = Callable[[object, str], str]
"""Adds an argument with its type, and returns how the statement refers to it."""


class Statement(msgspec.Struct, frozen=True):
    """A query and its arguments."""

    text: str
    arguments: list[object]


def place_of(table: JobTable, sort: str, row: asyncpg.Record) -> RowPlace:
    """The place of a row in a list."""
    value = row[table.orders[sort.removeprefix("-")].column]
    if isinstance(value, datetime):
        value = microseconds(value)
    return msgspec.convert([value, row["shard"], row["cluster"], row["proc"]], RowPlace)


def list_statements(
    table: JobTable,
    asked: Listed,
    wanted: AdFilter | None,
    after: RowPlace | None,
    *,
    limit: int | None,
    more_columns: Sequence[str] = (),
    narrowing: Narrowing | None = None,
) -> Iterator[Statement]:
    """
    The rows of a list in its order, in one statement or in two: rows without the value that is sorted by come last.

    `limit`: the most rows of one statement; None: all.  `narrowing`: where jobs are that the filter may be true of; None: anywhere.
    """
    order = table.orders[asked.sort.removeprefix("-")]
    columns = ", ".join((table.columns, *more_columns))
    way = ("<", "DESC") if asked.sort.startswith("-") else (">", "ASC")
    last = f" LIMIT {limit}" if limit is not None else ""
    if after is None or after.value is not None:
        keys = (order.column, *_KEY.split(", "))
        conditions, arguments = _conditions(table, asked, wanted, narrowing)
        if order.nullable:
            conditions.append(f"{order.column} IS NOT NULL")
        if after is not None:
            value = after.typed(order.kind)
            put = _putting(arguments)
            places = [
                put(each, kind)
                for each, kind in zip(
                    (value, after.shard, after.cluster, after.proc), (order.kind, *_KEY_TYPES), strict=True
                )
            ]
            conditions.append(f"({', '.join(keys)}) {way[0]} ({', '.join(places)})")
        yield _statement(table, columns, conditions, arguments, keys, way[1], last)
    if order.nullable:
        conditions, arguments = _conditions(table, asked, wanted, narrowing)
        conditions.append(f"{order.column} IS NULL")
        if after is not None and after.value is None:
            put = _putting(arguments)
            places = [
                put(each, kind)
                for each, kind in zip((after.shard, after.cluster, after.proc), _KEY_TYPES, strict=True)
            ]
            conditions.append(f"({_KEY}) {way[0]} ({', '.join(places)})")
        yield _statement(table, columns, conditions, arguments, _KEY.split(", "), way[1], last)


def past_statement(asked: ListJobs, after: RowPlace | None, limit: int) -> Statement:
    """
    The jobs that were in the queues at `as_of`, by submission: those that still are, with what happened to them, and those that have left
    since.  In which state they were the tables do not tell.
    """
    way, order = ("<", "DESC") if asked.sort.startswith("-") else (">", "ASC")
    arguments: list[object] = []
    put = _putting(arguments)
    moment = put(asked.as_of, "timestamptz")
    conditions = [f"submitted_at <= {moment}", *_places(asked, put), *_span("submitted_at", asked, put)]
    keys = ("submitted_at", *_KEY.split(", "))
    if after is not None:
        values = (after.typed("timestamptz"), after.shard, after.cluster, after.proc)
        kinds = ("timestamptz", *_KEY_TYPES)
        places = ", ".join(put(value, kind) for value, kind in zip(values, kinds, strict=True))
        conditions.append(f"({', '.join(keys)}) {way} ({places})")
    where = " AND ".join(conditions)
    last = f"ORDER BY {', '.join(f'{key} {order}' for key in keys)} LIMIT {limit}"
    columns = f"{_KEY}, owner, submitted_at"
    text = (
        f"(SELECT {columns}, happened FROM jobs.live WHERE {where} {last}) UNION ALL "  # noqa: S608 - values are arguments
        f"(SELECT {columns}, NULL::bytea FROM jobs.history WHERE left_at > {moment} AND {where} {last}) {last}"
    )
    return Statement(text, arguments)


def plan_statement(
    table: JobTable, asked: Listed, wanted: AdFilter | None, after: RowPlace | None
) -> tuple[Statement, str]:
    """What the database is asked about the first statement of a list, and the condition of that."""
    statement = next(list_statements(table, asked, wanted, after, limit=asked.limit + 1))
    condition = statement.text.partition(" WHERE ")[2].rpartition(" ORDER BY ")[0]
    return Statement(f"EXPLAIN (FORMAT JSON) {statement.text}", statement.arguments), condition


def clusters_statement(asked: ListJobs, most: int) -> Statement:
    """The clusters of which a list of the queues may have jobs, at most so many."""
    arguments: list[object] = []
    put = _putting(arguments)
    where = " AND ".join(_places(asked, put)) or "true"
    return Statement(
        f"SELECT shard, cluster FROM jobs.cluster WHERE {where} LIMIT {most}",  # noqa: S608 - values are arguments
        arguments,
    )


def count_statement(table: JobTable, asked: Listed, wanted: AdFilter | None) -> Statement:
    """How many jobs there are of each combination, the most first."""
    conditions, arguments = _conditions(table, asked, wanted)
    names = ", ".join(dict.fromkeys(_GROUPS[group] for group in asked.group_by))
    return Statement(
        f"SELECT {names}, count(*) AS count FROM {table.name} WHERE {' AND '.join(conditions)} "  # noqa: S608 - values are arguments
        f"GROUP BY {names} ORDER BY count(*) DESC, {names}",
        arguments,
    )


_GROUPS: Final[Mapping[Group, str]] = {
    "owner": "owner",
    "state": "status",
    "schedd": "shard",
    "cluster": "shard, cluster",
}


def _statement(
    table: JobTable,
    columns: str,
    conditions: Sequence[str],
    arguments: list[object],
    keys: Sequence[str],
    way: str,
    last: str,
) -> Statement:
    order = ", ".join(f"{key} {way}" for key in keys)
    return Statement(
        f"SELECT {columns} FROM {table.name} WHERE {' AND '.join(conditions)} ORDER BY {order}{last}",  # noqa: S608 - values are arguments
        arguments,
    )


def _putting(arguments: list[object]) -> _Put:
    def put(value: object, kind: str) -> str:
        arguments.append(value)
        return f"${len(arguments)}::{kind}"

    return put


def _conditions(
    table: JobTable, asked: Listed, wanted: AdFilter | None, narrowing: Narrowing | None = None
) -> tuple[list[str], list[object]]:
    arguments: list[object] = []
    found = list(_simple(table, asked, _putting(arguments)))
    if wanted is not None:
        text, values = prefilter(
            wanted.expression, wanted.context, first=len(arguments) + 1, table=table.searchable
        )
        arguments += values
        found.append(text)
    if narrowing is not None:
        found.append(f"({_narrow(narrowing, _putting(arguments))})")
    return found or ["true"], arguments


def _simple(table: JobTable, asked: Listed, put: _Put) -> Iterator[str]:
    if asked.state:
        yield f"status = ANY ({put([NUMBERS[state] for state in asked.state], 'integer[]')})"
    yield from _places(asked, put)
    yield from _span(table.moment, asked, put)
    if isinstance(asked, ListHistory) and asked.as_of is not None:
        yield f"left_at <= {put(asked.as_of, 'timestamptz')}"


def _span(column: str, asked: Listed, put: _Put) -> Iterator[str]:
    if asked.since is not None:
        yield f"{column} >= {put(asked.since, 'timestamptz')}"
    if asked.until is not None:
        yield f"{column} < {put(asked.until, 'timestamptz')}"


def _narrow(narrowing: Narrowing, put: _Put) -> str:
    """
    Jobs of the clusters, and those of others of which an attribute was set: the events that do it are in what happened by their names.
    """
    shards, clusters = put(narrowing.shards, "text[]"), put(narrowing.clusters, "integer[]")
    there = f"(shard, cluster) IN (SELECT * FROM unnest({shards}, {clusters}))"  # noqa: S608 - values are arguments
    return " OR ".join((there, *(f"position({put(name, 'bytea')} IN happened) > 0" for name in _SETTING)))


_SETTING: Final = tuple(
    str(kind.__struct_config__.tag).partition("/")[0].encode() + b"/" for kind in (JobEdited, JobTold)
)
"""In all their versions."""


def _places(asked: Listed, put: _Put) -> Iterator[str]:
    if len(asked.owner) == 1:  # an index has them in order
        yield f"owner = {put(asked.owner[0], 'text')}"
    elif asked.owner:
        yield f"owner = ANY ({put(asked.owner, 'text[]')})"
    if asked.schedd:
        yield f"shard = ANY ({put([SCHEDD + name for name in asked.schedd], 'text[]')})"
    if asked.cluster:
        yield f"cluster = ANY ({put(asked.cluster, 'integer[]')})"
