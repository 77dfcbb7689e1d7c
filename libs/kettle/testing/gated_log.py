"""A log in memory whose commits a test lets through."""

import asyncio
from collections.abc import Sequence

from kettle.eventsourcing.log import Answered
from kettle.eventsourcing.memory import MemoryLog
from kettle_wire.frames import Frame


class GatedLog(MemoryLog):
    """Commits while `gate` is set, as it is at the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()

    async def append(self, frame: Frame, answers: Sequence[Answered] = ()) -> None:
        """See `MemoryLog.append`; waits for the gate."""
        await self.gate.wait()
        await super().append(frame, answers)
