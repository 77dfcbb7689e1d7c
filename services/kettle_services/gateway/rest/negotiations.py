"""What is asked about negotiation cycles: from the tables of the projection `negotiation`."""

from collections.abc import Sequence
from datetime import UTC, datetime

import asyncpg
import msgspec

from kettle.projections.negotiation import Negotiation as Projection
from kettle.projections.stored_projection import microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, Reading, frames_tag
from kettle_services.gateway.rest.page_tokens import CyclePlace, page_token, place_of
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.negotiations import (
    GetNegotiation,
    ListNegotiations,
    Matched,
    Negotiation,
    NegotiationDetail,
    Negotiations,
    Refusal,
    Rejected,
)
from kettle_wire.rest.problem import ProblemCode


class NegotiationQuestions:
    """Answers them."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        self._projection = Projection()

    async def list(self, asked: Asked) -> Answer:
        """Cycles, the newest first."""
        parameters: ListNegotiations = asked.parameters
        after = place_of(parameters, parameters.page, CyclePlace) if parameters.page else None
        async with self._tables.read() as reading:
            frames = await self._frames(reading)
            asked.require_changed(frames_tag(frames))
            rows = await reading.fetch(
                QUERIES["cycles"],
                parameters.since,
                parameters.until,
                parameters.as_of,
                parameters.submitter,
                after.moment() if after else None,
                after.shard if after else None,
                after.cycle if after else None,
                None,
                None,
                parameters.limit + 1,
            )
        shown = rows[: parameters.limit]
        following = None
        if len(rows) > parameters.limit:
            last = shown[-1]
            place = CyclePlace(microseconds(last["at"]), last["shard"], last["cycle"])
            following = page_token(parameters, place)
        answer = Negotiations(negotiations=list(map(_negotiation, shown)), next=following, frames=frames)
        return Answer(answer, frames_tag(frames))

    async def get(self, asked: Asked) -> Answer:
        """One cycle, with all that it decided."""
        parameters: GetNegotiation = asked.parameters
        shard, cycle, most = parameters.negotiator, parameters.cycle, parameters.limit
        async with self._tables.read() as reading:
            none = [None] * 3
            found = await reading.fetch(QUERIES["cycles"], *none, [], *none, shard, cycle, 1)
            if not found:
                raise RequestRefused(
                    404,
                    ProblemCode.NOT_FOUND,
                    f"{shard} has recorded no cycle {cycle}, or it is older than 30 days",
                )
            arguments = (shard, cycle, parameters.submitter, most + 1)
            matches = await reading.fetch(QUERIES["matches"], *arguments)
            rejections = await reading.fetch(QUERIES["rejections"], *arguments)
        detail = NegotiationDetail(
            negotiation=_negotiation(found[0]),
            matches=_matches(matches[:most]),
            rejections=_rejections(rejections[:most]),
            cut=len(matches) > most or len(rejections) > most,
        )
        return Answer(detail)

    async def _frames(self, reading: Reading) -> dict[str, int]:
        rows = await reading.fetch(QUERIES["frames"], self._projection.name, self._projection.version)
        return {row["shard"]: row["frame"] for row in rows}


def _negotiation(row: asyncpg.Record) -> Negotiation:
    return Negotiation(
        cycle=row["cycle"],
        negotiator=row["shard"],
        recorded=row["at"],
        started=datetime.fromtimestamp(row["started"], tz=UTC),
        duration=row["duration"],
        slots=row["slots"],
        idle=row["idle"],
        matched=row["matched"],
        rejected=row["rejected"],
        submitters=row["submitters"],
        refusals=[Refusal(reason=reason, jobs=jobs) for reason, jobs in row["refusals"]],
    )


def _matches(rows: Sequence[asyncpg.Record]) -> list[Matched]:
    return [
        Matched(
            submitter=row["submitter"],
            schedd=row["schedd"],
            autocluster=row["autocluster"],
            machine=row["startd"],
            slot=row["slot"],
            jobs=row["count"],
        )
        for row in rows
    ]


def _rejections(rows: Sequence[asyncpg.Record]) -> list[Rejected]:
    return [
        Rejected(
            submitter=row["submitter"],
            schedd=row["schedd"],
            autocluster=row["autocluster"],
            jobs=row["count"],
            reason=row["reason"],
            slots=row["slots"],
            clauses=msgspec.json.decode(row["clauses"]),
        )
        for row in rows
    ]
