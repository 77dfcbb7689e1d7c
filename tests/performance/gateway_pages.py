"""
How fast pages are with a long queue of one person: JSON on standard output.

    python -m tests.performance.gateway_pages --queued=100000 --history=300000

It is the worst case: all jobs are held, and are those of the person who looks, so that no index chooses among them.  The pages come
over real HTTP from the real application, whose client shares its process, as in `tests.performance.gateway`.
"""

import argparse
import asyncio
import getpass
import json
import tempfile
from pathlib import Path
from typing import Any, Final

import aiohttp
from tests.performance.gateway import ask, fill, front

from kettle.projections import Jobs
from kettle.projections import prepare as make_tables
from kettle.storage import Database, PgLog
from kettle.storage.migration import migrate
from kettle.testing.measurements import summary
from kettle.testing.servers.embedded import servers
from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.rest.job_tables import session_settings

ME: Final = getpass.getuser()
SHOWN: Final = {
    "healthz": "/healthz",
    "home": "/",
    "jobs": "/jobs",
    "jobs_of_one_sorted": f"/jobs?owner={ME}&sort=-entered",
    "jobs_by_owner": "/jobs?group_by=owner",
    "jobs_filter_on_columns": "/jobs?filter=ProcId+%3C+500",
    "jobs_filter_on_ads": "/jobs?filter=RequestMemory+%3D%3D+300",
    "history": "/history",
    "history_filter": "/history?filter=ExitCode+%3D%3D+3",
}
TERMINAL: Final = ("xterm", "terminal")
"""Beginnings of the names of files that only the page of a terminal has."""


async def _hold(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("UPDATE jobs.cluster SET owner = $1", ME)
        await connection.execute(
            "UPDATE jobs.live SET owner = $1, status = 5, hold_reason = 'a file is missing', "
            "entered_at = now() - proc * interval '1 s'",
            ME,
        )
        await connection.execute("VACUUM ANALYZE jobs.live")


async def measure(directory: Path, queued: int, history: int, rounds: int) -> dict[str, Any]:
    """All pages, in turn with each other."""
    async with servers(directory, durable=True) as running, PgLog.connect(running.postgres.dsn) as log:
        await log.database.run(migrate)
        await make_tables(Jobs(), log.database, [log])
        await fill(log.database, queued, history)
        await _hold(log.database)
        times: dict[str, list[float]] = {name: [] for name in SHOWN}
        reading = Database.connect(running.postgres.dsn, session=session_settings(60.0))
        async with reading as database, front(database) as session:
            for _ in range(rounds):
                for name, path in SHOWN.items():
                    times[name].append(await ask(session, path))
            sizes = {name: await _size(session, path) for name, path in SHOWN.items()}
        return {
            **{f"{name}_ms": summary(values, 2) for name, values in times.items()},
            "largest_page_bytes": max(sizes.values()),
            "all_files_compressed_bytes": sum(
                len(each.compressed)
                for name, each in Assets().by_name.items()
                if not name.startswith(TERMINAL)
            ),
        }


async def _size(session: aiohttp.ClientSession, path: str) -> int:
    """Bytes of HTML, not compressed."""
    async with session.get(path) as response:
        return len(await response.read())


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--history", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        report = asyncio.run(measure(Path(directory), arguments.queued, arguments.history, arguments.rounds))
    print(json.dumps({"queued": arguments.queued, "history": arguments.history, **report}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
