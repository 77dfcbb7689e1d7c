"""A rebuild in a process of its own, for tests that kill it: `rebuild_once.py DSN PROJECTION`."""

import asyncio
import sys

from kettle.projections import PROJECTIONS, rebuild
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S


async def main(dsn: str, name: str) -> None:
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        done = await rebuild(PROJECTIONS[name](), log.database, [log])
        print(done.frames, done.events, flush=True)  # noqa: T201 - what the test reads


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
