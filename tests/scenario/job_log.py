"""
Job event logs as tests read them: the file is written after the record, so what is looked for is waited for.
"""

import asyncio
from pathlib import Path

from kettle.testing.patience import PATIENCE_S
from kettle.userlog import parse
from kettle.userlog.events import LogEvent


async def written(path: Path, text: str, *, times: int = 1) -> str:
    """What is in a log, as soon as `text` is in it so many times."""
    async with asyncio.timeout(PATIENCE_S):
        while not path.exists() or (found := path.read_text()).count(text) < times:
            await asyncio.sleep(0.05)
    return found


async def logged(path: Path, kind: type[LogEvent], *, times: int = 1) -> list[LogEvent]:
    """The events in a log, as soon as so many of them are of `kind`."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            events = parse(path.read_text()) if path.exists() else []
            if sum(isinstance(event, kind) for event in events) >= times:
                return events
            await asyncio.sleep(0.05)
