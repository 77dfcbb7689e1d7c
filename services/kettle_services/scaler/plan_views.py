"""What was planned in the past, and what became of it, which only the log knows."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.eventsourcing.log import Log
from kettle_services.scaler.domain import plans
from kettle_services.scaler.domain.history import MachineHistory, moments
from kettle_services.scaler.domain.leases import lease as leases
from kettle_services.scaler.domain.plans import LastPlan
from kettle_services.scaler.lease_views import MOST_FRAMES
from kettle_services.scaler.record import SHARD
from kettle_wire.commands.worker_pools import MachinesOverTime
from kettle_wire.events import decode
from kettle_wire.events.plan import PlanMade, PlannedMachines
from kettle_wire.frames import Entry

_PLAN: Final = PlanMade.__struct_config__.tag
_PAGE: Final = 500
"""So many frames are read at once, the newest first."""


class _Planned(msgspec.Struct, frozen=True):
    """All that is read of a plan for how many machines were wanted: the rest of it is long."""

    machines: list[PlannedMachines] = []


_decode_planned: Final = msgspec.msgpack.Decoder(_Planned).decode


class PlanLog:
    """Reads it."""

    def __init__(self, log: Log) -> None:
        self._log: Final = log

    async def at(self, moment: float, *, head: int) -> LastPlan | None:
        """
        The plan that was in force at a moment; None: none of the frames before it has one, of which the newest are looked through.

        `head`: the number of the newest frame.
        """
        newest = await self._last_frame(moment, head)
        oldest = max(0, newest - MOST_FRAMES)
        while newest > oldest:
            after = max(oldest, newest - _PAGE)
            found: LastPlan | None = None
            async for frame in self._log.read(SHARD, after=after, until=newest):
                for entry in frame.entries:
                    if entry.stream == plans.STREAM:
                        event = decode(entry.data)
                        assert isinstance(event, PlanMade), f"{entry.stream} has a {entry.type}"
                        found = LastPlan(event, frame.at / 1e6)
            if found is not None:
                return found
            newest = after
        return None

    async def _last_frame(self, moment: float, head: int) -> int:
        """The number of the last frame that was recorded until a moment; 0: there is none."""
        known, beyond = 0, head + 1
        while beyond - known > 1:
            middle = (known + beyond) // 2
            [frame] = [each async for each in self._log.read(SHARD, after=middle - 1, until=middle)]
            if frame.at / 1e6 <= moment:
                known = middle
            else:
                beyond = middle
        return known

    async def machines(
        self, pool: str, *, since: float, until: float, points: int, head: int
    ) -> MachinesOverTime:
        """How many machines a pool had and wanted; what is older than the newest frames is not known."""
        times = moments(since, until, points)
        history = MachineHistory(pool, times)
        after = max(0, head - MOST_FRAMES)
        begins = 0.0
        async for frame in self._log.read(SHARD, after=after):
            at = frame.at / 1e6
            if after and not begins:
                begins = at
            history.goes_on(at)
            if at > until:
                break
            for entry in frame.entries:
                if entry.stream == plans.STREAM:
                    history.planned(_machines_of(entry))
                elif entry.stream.startswith(f"{leases.KIND}/"):
                    history.lease(entry.stream, decode(entry.data), at)
            if not frame.number % _PAGE:
                await asyncio.sleep(0)  # machines are to be answered meanwhile
        history.goes_on(float("inf"))
        return MachinesOverTime(times=times, **history.series, complete_since=begins)


def _machines_of(entry: Entry) -> Sequence[PlannedMachines]:
    assert entry.type == _PLAN, f"{entry.stream} has a {entry.type}"
    return _decode_planned(entry.data).machines
