"""
A process that looks after one job at a batch system, for tests that kill it: `DSN SETTINGS PLACE`.

The first one begins a job, each later one goes on with it; it writes how the job ended into `PLACE/report`.
"""

import asyncio
import sys
from pathlib import Path

import msgspec
from tests.conformance.batch.entrypoint import World, until

from kettle.storage import PgLog, PgWorkingSet
from kettle.testing.patience import PATIENCE_S
from kettle_services.ce.batch.settings import BatchSettings
from kettle_wire.worker_reports import FinalReport


async def run(dsn: str, settings: BatchSettings, place: Path) -> None:
    """Until the end of the job is reported."""
    async with PgLog.connect(dsn, patience=PATIENCE_S) as log:
        world = World(settings, place, log=log, working_set=PgWorkingSet(log.database))
        async with world.running() as entrypoint:
            await entrypoint.well()
            if not entrypoint.claims:
                await entrypoint.submit("echo ran >>runs; exit 7")
            finals: list[FinalReport] = []

            def is_there() -> bool:
                finals[:] = [each.body for each in world.reports if isinstance(each.body, FinalReport)]
                return bool(finals)

            await until(is_there, lambda: f"{entrypoint.claims}")
            (place / "report").write_bytes(msgspec.json.encode(finals[0]))


if __name__ == "__main__":
    asyncio.run(
        run(sys.argv[1], msgspec.json.decode(sys.argv[2].encode(), type=BatchSettings), Path(sys.argv[3]))
    )
