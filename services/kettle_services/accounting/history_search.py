"""A search in the history: the tables answer what they can, the rest is evaluated on the resulting rows."""

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import asyncpg
import msgspec

from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true
from kettle.projections.jobs import prefilter
from kettle.projections.stored_projection import instant, microseconds
from kettle.storage.database import Connection
from kettle_wire.ads.types import Ad
from kettle_wire.commands.accounting import History, HistoryPlace, QueryHistory
from kettle_wire.jobs import JobId

ANSWER_BYTES: Final = 1 << 20
"""About so many bytes of ads are in one answer; who wants more asks again."""
PAGE: Final = 100
"""Rows that are evaluated at a time on the event loop."""

_US: Final = 1_000_000
_ORDER: Final = "ORDER BY left_at DESC, shard DESC, cluster DESC, proc DESC"
_COLUMNS: Final = "shard, cluster, proc, left_at, ad"
_decode: Final = msgspec.msgpack.Decoder(Ad).decode


_Place: TypeAlias = Callable[[object, str], str]
"""Adds an argument with its type, and returns how the statement refers to it."""


class Statement(msgspec.Struct, frozen=True):
    """A query and its arguments."""

    text: str
    arguments: list[object]


def statement(request: QueryHistory, constraint: Node | None, context: Context) -> Statement:
    """
    The rows among which the answer is, newest first.

    Each way to name jobs is a part with an index of its own; without a constraint each part needs only the newest.
    """
    arguments: list[object] = []

    def place(value: object, kind: str) -> str:
        arguments.append(value)
        return f"${len(arguments)}::{kind}"

    also = list(_also(request, place))
    if constraint is not None:
        condition, values = prefilter(constraint, context, first=len(arguments) + 1)
        arguments += values
        also.append(condition)
    limit = f" LIMIT {request.limit}" if request.limit and constraint is None else ""
    parts = [
        f"SELECT {_COLUMNS} FROM jobs.history WHERE {' AND '.join([named, *also])} {_ORDER}{limit}"  # noqa: S608 - values are arguments
        for named in list(_named(request, place)) or ["true"]
    ]
    if len(parts) == 1:
        return Statement(parts[0], arguments)
    union = " UNION ".join(f"({part})" for part in parts)
    return Statement(f"SELECT {_COLUMNS} FROM ({union}) AS found {_ORDER}{limit}", arguments)  # noqa: S608 - see above


def _named(request: QueryHistory, place: _Place) -> Iterator[str]:
    if request.jobs:
        clusters = place([job.cluster for job in request.jobs], "integer[]")
        procs = place([job.proc for job in request.jobs], "integer[]")
        yield f"(cluster, proc) IN (SELECT * FROM unnest({clusters}, {procs}))"  # noqa: S608 - see above
    if request.clusters:
        yield f"cluster = ANY ({place(request.clusters, 'integer[]')})"
    if request.owners:
        yield f"owner = ANY ({place(request.owners, 'text[]')})"


def _also(request: QueryHistory, place: _Place) -> Iterator[str]:
    if request.since is not None:
        yield f"left_at >= {place(instant(round(request.since * _US)), 'timestamptz')}"
    if request.until is not None:
        yield f"left_at < {place(instant(round(request.until * _US)), 'timestamptz')}"
    if (after := request.after) is not None:
        left = place(instant(after.left_at), "timestamptz")
        shard = place(after.shard, "text")
        job = f"{place(after.job.cluster, 'integer')}, {place(after.job.proc, 'integer')}"
        yield f"(left_at, shard, cluster, proc) < ({left}, {shard}, {job})"


async def search(
    connection: Connection, request: QueryHistory, constraint: Node | None, *, most_seconds: float
) -> History:
    """
    Look at rows, newest first, until there are enough ads, or too many bytes of them, or the time is over.
    """
    began = time.monotonic()
    now = time.time()
    context = Context(now=lambda: int(now), max_steps=FOREIGN_STEPS)
    query = statement(request, constraint, context)
    found: list[Ad] = []
    examined = size = 0
    async with connection.transaction(readonly=True):
        # The plan is for these very values: one for all values could use none of the partial indexes.
        await connection.execute("SET LOCAL plan_cache_mode TO force_custom_plan")
        cursor = await connection.cursor(query.text, *query.arguments)
        while rows := await cursor.fetch(PAGE):
            for row in rows:
                examined += 1
                ad = _decode(row["ad"])
                if constraint is None or _holds(constraint, ad, context):
                    found.append(ad)
                    size += len(row["ad"])
                if size >= ANSWER_BYTES or (request.limit and len(found) >= request.limit):
                    return History(jobs=found, more=_place(row), examined=examined)
            if time.monotonic() - began >= most_seconds:
                return History(jobs=found, more=_place(rows[-1]), examined=examined)
    return History(jobs=found, examined=examined)


def _holds(constraint: Node, ad: Ad, context: Context) -> bool:
    try:
        return is_true(evaluate(constraint, ClassAd.from_wire(ad), None, context))
    except EvaluationFailed:
        return False


def _place(row: asyncpg.Record) -> HistoryPlace:
    return HistoryPlace(microseconds(row["left_at"]), row["shard"], JobId(row["cluster"], row["proc"]))
