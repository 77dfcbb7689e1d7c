"""
Bugs that the fault harness has found, each as the shortest way to see it.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kettle.testing.chaos import disk
from kettle.testing.pool import throwaway_pool

WITHIN_S = 30.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    if why := disk.why_not():
        pytest.skip(why)
    with ExitStack() as stack:
        yield stack.enter_context(disk.small_disk(tmp_path / "small", mib=512, mode=0o700))


@pytest.mark.breaks_servers
async def test_a_service_that_ends_on_a_full_disk(tmp_path: Path, template: Path, small: Path) -> None:
    """
    The master outlives a state file that cannot be written, keeps its services, and writes it when there is room.

    It ended with the error of the write, and killed the whole pool: a crash where a clean stop was promised.
    """
    async with throwaway_pool(
        tmp_path, home=small, cpus=2, template=template, settings={"master": {"disk_interval": 600.0}}
    ) as pool:
        master = pool.state.pid
        killed = pool.pid("negotiator")
        async with disk.full(small), asyncio.timeout(WITHIN_S):
            pool.kill("negotiator")
            while Path(f"/proc/{killed}").exists():  # until the master has taken note of its end
                await asyncio.sleep(0.01)
        await pool.restarted("negotiator", after=killed, within_s=WITHIN_S)
        assert master == pool.state.pid
