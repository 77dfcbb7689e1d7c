"""What is asked about claims, and what runs on slots: from the tables, now and as it was."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

import asyncpg
import msgspec

from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_statements import Order, Statement
from kettle_services.gateway.rest.job_tables import (
    MOST_GROUPS,
    QUERIES,
    JobTables,
    Reading,
    frames_tag,
    require_few,
)
from kettle_services.gateway.rest.page_tokens import NamedPlace, page_token, place_of
from kettle_wire.rest.claims import Claim, Claims, ListClaims, RunningJob
from kettle_wire.rest.jobs import GroupCount

_ORDERS: Final[Mapping[str, Order]] = {
    "granted": Order("granted_at", "timestamptz"),
    "ended": Order("ended_at", "timestamptz", nullable=True),
    "submitter": Order("submitter", "text"),
    "machine": Order("startd", "text"),
    "slot": Order("slot", "text"),
}
_GROUPS: Final = {"submitter": "submitter", "machine": "startd", "schedd": "shard"}
_COLUMNS: Final = "shard, claim, startd, slot, submitter, lease, granted_at, ended_at, reason"


class ClaimQuestions:
    """Answers them."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables

    async def list(self, asked: Asked) -> Answer:
        """Claims of slots."""
        parameters: ListClaims = asked.parameters
        after = place_of(parameters, parameters.page, NamedPlace) if parameters.page else None
        async with self._tables.read() as reading:
            frames = await reading.frames()
            asked.require_changed(frames_tag(frames))
            if parameters.group_by:
                groups = await _counts(reading, parameters)
                return Answer(Claims(groups=groups, frames=frames), frames_tag(frames))
            statement = _listed(parameters, after)
            rows = await reading.fetch(statement.text, *statement.arguments)
            shown = rows[: parameters.limit]
            if parameters.as_of is None:
                jobs = await _on_claims(reading, shown)
            else:
                jobs = await _on_slots_then(reading, shown, parameters.as_of)
        following = None
        if len(rows) > parameters.limit:
            following = page_token(parameters, _place(parameters, shown[-1]))
        claims = [_claim(row, jobs.get((row["shard"], row["claim"])), parameters.as_of) for row in shown]
        return Answer(Claims(claims=claims, next=following, frames=frames), frames_tag(frames))


async def jobs_on_machine(reading: Reading, machine: str, moment: datetime | None) -> list[RunningJob]:
    """What runs on a machine, or ran there at a moment, by slot."""
    if moment is None:
        rows = await reading.fetch(QUERIES["jobs_on_machine"], machine)
    else:
        rows = await reading.fetch(QUERIES["jobs_on_machine_then"], machine, moment)
    return [_job(row) for row in rows]


async def _on_claims(reading: Reading, rows: list[asyncpg.Record]) -> dict[tuple[str, str], RunningJob]:
    held = [row["claim"] for row in rows if row["ended_at"] is None]
    if not held:
        return {}
    found = await reading.fetch(QUERIES["jobs_on_claims"], held)
    return {(row["shard"], row["claim"]): _job(row) for row in found}


async def _on_slots_then(
    reading: Reading, rows: list[asyncpg.Record], moment: datetime
) -> dict[tuple[str, str], RunningJob]:
    held = [row for row in rows if row["ended_at"] is None or row["ended_at"] > moment]
    if not held:
        return {}
    slots = [row["slot"] for row in held]
    found = {
        (row["shard"], row["slot"]): _job(row)
        for row in await reading.fetch(QUERIES["jobs_on_slots_then"], slots, moment)
    }
    return {
        (row["shard"], row["claim"]): job
        for row in held
        if (job := found.get((row["shard"], row["slot"]))) is not None
    }


def _conditions(asked: ListClaims, arguments: list[object]) -> Iterator[str]:
    def put(value: object, kind: str) -> str:
        arguments.append(value)
        return f"${len(arguments)}::{kind}"

    states = set(asked.state) or {"held"}
    over = f"ended_at <= {put(asked.as_of, 'timestamptz')}" if asked.as_of else "ended_at IS NOT NULL"
    if asked.as_of is not None:
        yield f"granted_at <= {put(asked.as_of, 'timestamptz')}"
    if states == {"ended"}:
        yield over
    elif states == {"held"}:
        yield f"({over}) IS NOT TRUE" if asked.as_of else "ended_at IS NULL"
    for column, names in (("submitter", asked.submitter), ("startd", asked.machine), ("slot", asked.slot)):
        if names:
            yield f"{column} = ANY ({put(names, 'text[]')})"
    if asked.schedd:
        yield f"shard = ANY ({put([SCHEDD + name for name in asked.schedd], 'text[]')})"
    if asked.since is not None:
        yield f"granted_at >= {put(asked.since, 'timestamptz')}"
    if asked.until is not None:
        yield f"granted_at < {put(asked.until, 'timestamptz')}"


def _listed(asked: ListClaims, after: NamedPlace | None) -> Statement:
    order = _ORDERS[asked.sort.removeprefix("-")]
    way, sign, last = ("DESC", "<", "-infinity") if asked.sort.startswith("-") else ("ASC", ">", "infinity")
    value = f"coalesce({order.column}, '{last}')" if order.nullable else order.column
    arguments: list[object] = []
    conditions = list(_conditions(asked, arguments)) or ["true"]
    if after is not None:
        arguments += [after.typed(order.kind), after.shard, after.name]
        first = len(arguments) - 2
        place = f"${first}::{order.kind}"
        if order.nullable:
            place = f"coalesce({place}, '{last}')"
        conditions.append(f"({value}, shard, claim) {sign} ({place}, ${first + 1}::text, ${first + 2}::text)")
    return Statement(
        f"SELECT {_COLUMNS} FROM jobs.claim WHERE {' AND '.join(conditions)} "  # noqa: S608 - values are arguments
        f"ORDER BY {value} {way}, shard {way}, claim {way} LIMIT {asked.limit + 1}",
        arguments,
    )


async def _counts(reading: Reading, asked: ListClaims) -> list[GroupCount]:
    arguments: list[object] = []
    conditions = list(_conditions(asked, arguments)) or ["true"]
    names = list(dict.fromkeys(asked.group_by))
    columns = ", ".join(_GROUPS[name] for name in names)
    rows = await reading.fetch(
        f"SELECT {columns}, count(*) AS count FROM jobs.claim WHERE {' AND '.join(conditions)} "  # noqa: S608 - values are arguments
        f"GROUP BY {columns} ORDER BY count(*) DESC, {columns} LIMIT {MOST_GROUPS + 1}",
        *arguments,
    )
    require_few(len(rows))
    return [
        GroupCount(
            key={name: row[_GROUPS[name]].removeprefix(SCHEDD if name == "schedd" else "") for name in names},
            count=row["count"],
        )
        for row in rows
    ]


def _place(asked: ListClaims, row: asyncpg.Record) -> NamedPlace:
    value = row[_ORDERS[asked.sort.removeprefix("-")].column]
    if isinstance(value, datetime):
        value = microseconds(value)
    return msgspec.convert([value, row["shard"], row["claim"]], NamedPlace)


def _claim(row: asyncpg.Record, job: RunningJob | None, as_of: datetime | None) -> Claim:
    ended = row["ended_at"]
    over = ended is not None and (as_of is None or ended <= as_of)
    return Claim(
        id=row["claim"],
        schedd=row["shard"].removeprefix(SCHEDD),
        machine=row["startd"],
        slot=row["slot"],
        submitter=row["submitter"],
        lease=row["lease"],
        granted=row["granted_at"],
        ended=ended if over else None,
        reason=row["reason"] if over else None,
        job=job,
    )


def _job(row: asyncpg.Record) -> RunningJob:
    return RunningJob(
        id=f"{row['cluster']}.{row['proc']}@{row['shard'].removeprefix(SCHEDD)}",
        owner=row["owner"],
        slot=row["slot"],
        since=row["begun_at"],
        attempt=row["attempt"],
    )
