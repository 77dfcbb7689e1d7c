"""Forgets what was decided about clusters of which no job is in the queue any more; the log keeps it."""

import asyncio
import logging
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle_services.ce.domain.state import DECISION
from kettle_services.ce.record import Record
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.events import RouteForgotten

_log: Final = logging.getLogger(__name__)
_INTERVAL_S: Final = 60.0
_AT_ONCE: Final = 500
"""Clusters of which is asked in one question."""
_WITHIN_S: Final = 10.0


async def forget_departed(bus: Bus, record: Record, schedd: str) -> None:
    """Look now and then; never returns."""
    while True:
        await asyncio.sleep(_INTERVAL_S)
        try:
            await forget_once(bus, record, schedd)
        except BusError as error:
            _log.info("the schedd does not answer", extra={"cause": str(error)})


async def forget_once(bus: Bus, record: Record, schedd: str) -> None:
    """Ask which clusters are there. The newest decision stays: it says whose turn is next."""
    decided = record.state.decisions.states
    newest = record.state.turn
    numbers = [int(name) for name, each in decided.items() if each.turn < newest]
    for start in range(0, len(numbers), _AT_ONCE):
        some = numbers[start : start + _AT_ONCE]
        request = QueryJobs(select=Select(clusters=some), projection=["ClusterId"])
        answer = await bus.call(QUERY_JOBS, schedd, request, deadline=_WITHIN_S)
        there = {ad["ClusterId"] for ad in answer.jobs}
        gone = [number for number in some if number not in there and str(number) in decided]
        if gone:
            await record.record([(f"{DECISION}{number}", RouteForgotten()) for number in gone])
