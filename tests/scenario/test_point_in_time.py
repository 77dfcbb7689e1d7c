"""The how-to "Back up and restore a pool", section "Restore to a moment", as it stands, on a real server."""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kettle.client import select
from kettle.pool.home import open_home
from kettle.pool.personal_settings import write_settings
from kettle.testing.commands.running import execute
from kettle.testing.throwaway_pool import ThrowawayPool, merged, throwaway_pool

LONG = "KETTLE_TEST_LONG"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up-and-restore.md"
WITHIN_S = 600.0
JOB = "executable = /bin/true\nrequest_memory = 16\nhold = true\nqueue\n"


def commands(name: str) -> str:
    """The lines of a block of the page."""
    found = re.search(rf"<!-- drill: {name} -->\n\n((?:    .*\n|\n(?=    ))+)", PAGE.read_text())
    assert found is not None, name
    return re.sub(r"^    ", "", found[1], flags=re.MULTILINE)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the server's account can reach, unlike those of tests."""
    with tempfile.TemporaryDirectory(prefix="kettle-wal-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


async def shell(script: str, pool: ThrowawayPool, place: Path, **more: str) -> None:
    environ = {
        **pool.environ,
        "KETTLE_HOME": str(pool.home),
        "BACKUP": str(place),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **more,
    }
    said = await execute(["sh", "-euc", script], place, environ, within_s=WITHIN_S)
    assert 0 == said.status, said


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: a base backup, and a return ({LONG}=1 does it)"
)
async def test_a_pool_goes_back_to_a_moment(tmp_path: Path, place: Path) -> None:
    """What was recorded before the moment is there, what came after it is not, and the log is clean."""
    settings = {"master": {"throwaway": False}}
    async with throwaway_pool(tmp_path, cpus=2, settings=settings, home=tmp_path / "home") as pool:
        home = open_home(pool.home)
        home.settings.unlink(missing_ok=True)
        write_settings(home, merged(pool.settings))
        first = (await pool.client.submit(JOB)).cluster
        await shell(commands("prepare"), pool, place)
        second = (await pool.client.submit(JOB)).cluster
        await asyncio.sleep(1.1)  # moments are told in whole seconds to a person
        moment = datetime.now(UTC).isoformat(sep=" ")
        await asyncio.sleep(1.1)
        third = (await pool.client.submit(JOB)).cluster
        async with asyncio.timeout(WITHIN_S):
            before = len(list((place / "wal").iterdir()))
            while len(list((place / "wal").iterdir())) <= before:  # the last file is copied
                await asyncio.sleep(0.1)
        await shell(commands("restore"), pool, place, MOMENT=moment)
        totals = await pool.client.totals(select(first, second, third))
        assert 2 == totals.total, totals
        audit = await pool.log_check()
        assert audit.clean, audit.said
