"""Waiting until the tables have what somebody has written, or has seen elsewhere."""

from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.commands.accounting import QUERY_PROGRESS, QueryProgress
from kettle_wire.endpoint import Position
from kettle_wire.rest.problem import ProblemCode

PATIENCE_S: Final = 10.0
"""Longer than accounting itself waits."""


class Freshness:
    """Asks accounting, which fills the tables."""

    def __init__(self, bus: Bus, accounting: str, tables: JobTables) -> None:
        """`accounting`: its name."""
        self._bus = bus
        self._accounting = accounting
        self._tables = tables

    async def wait(self, at_least: str | None) -> None:
        """
        Wait until a frame, `SHARD:FRAME`, is in the tables.

        Raises RequestRefused: it does not come, or nobody has recorded it.
        """
        if at_least is None:
            return
        shard, _, frame = at_least.rpartition(":")
        async with self._tables.read() as reading:
            recorded = await reading.fetch(QUERIES["recorded"], shard)
        if recorded and int(frame) > recorded[0]["frame"]:
            raise _nothing(
                f"{shard} has recorded {recorded[0]['frame']} frames, and frame {frame} is not there"
            )
        request = QueryProgress(at_least=Position(shard, int(frame)))
        try:
            await self._bus.call(QUERY_PROGRESS, self._accounting, request, deadline=PATIENCE_S)
        except RefusedError as error:
            if not recorded:
                raise _nothing(f"nothing is known of a queue {shard}") from error
            raise RequestRefused(503, ProblemCode.BEHIND, str(error), retry_after=1) from error
        except BusError as error:
            raise RequestRefused(
                503,
                ProblemCode.UNAVAILABLE,
                f"accounting does not say how far the tables are: {error}",
                retry_after=5,
            ) from error


def _nothing(what: str) -> RequestRefused:
    return refused_field("/query/at_least", f"{what}: give `position` of the answer to a write")
