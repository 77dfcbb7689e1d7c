"""What a machine does for its owner while it does nothing for the pool, with real starters and processes."""

import os
import secrets
from pathlib import Path

import msgspec
import pytest

from kettle.testing.submit_side import output, script
from kettle.testing.worker import WorkerPool
from kettle_services.startd.settings import StartdSettings
from kettle_wire.commands.startd import RELEASE, Release

MARK = str(10**7 + secrets.randbelow(9 * 10**7))
"""Seconds that what runs as backfill sleeps, and nothing else: tests run side by side."""


@pytest.fixture
def settings(settings: StartdSettings) -> StartdSettings:
    """A machine that runs a program which does not end and starts another, when asked by SIGTERM neither."""
    text = f"trap '' TERM; sleep {MARK} & sleep {MARK}; wait"
    return msgspec.structs.replace(
        settings,
        backfill_command=["/bin/sh", "-c", text],
        start_backfill="true",
        polling_interval=0.05,
    )


def ours(pool: WorkerPool) -> list[int]:
    return [pid for pid in pool.processes(f"sleep\0{MARK}") if _status(pid) != "Z"]


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


async def test_a_slot_works_for_its_owner_until_it_is_wanted(pool: WorkerPool) -> None:
    """
    Given a machine without jobs, then its program runs in a sandbox as the account of its own; when a job comes, all of it is
    gone before the job begins; when the job is gone, it runs again; a drain leaves nothing.
    """
    async with pool.startd() as startd:
        await pool.until(lambda: len(ours(pool)) == 2)
        before = ours(pool)
        (sandbox,) = pool.sandboxes
        assert {str(sandbox)} == {str(Path(f"/proc/{pid}/cwd").readlink()) for pid in before}
        assert (os.geteuid() == 0) == (
            {os.geteuid()} != {Path(f"/proc/{pid}").stat().st_uid for pid in before}
        )

        look = f"for p in /proc/[0-9]*; do grep -qs {MARK[:-1]}[{MARK[-1]}] $p/cmdline && echo $p; done; true"
        submitter = pool.submitter
        key = await submitter.claim(RequestCpus=8)
        ended = await submitter.final(await submitter.start(script(look), claim=key))
        assert ended.result.exit is not None
        assert b"" == output(ended)
        assert not set(before) & set(ours(pool))

        await submitter.schedd.call(RELEASE, submitter.startd, Release(claims=[key], reason="done"))
        await pool.until(lambda: len(ours(pool)) == 2)
        await startd.drain()
        assert [] == ours(pool)
    assert [] == pool.sandboxes
    assert [] == list((pool.home / "startd" / "backfill" / "reports").iterdir())


async def test_a_successor_ends_what_it_does_not_know(pool: WorkerPool) -> None:
    """
    Given a startd that ended without a drain, when the next one begins, then the program of the former is ended, and
    runs again once.
    """
    async with pool.startd():
        await pool.until(lambda: len(ours(pool)) == 2)
        before = ours(pool)
    async with pool.startd() as startd:
        await pool.until(lambda: not set(before) & set(ours(pool)) and len(ours(pool)) == 2)
        await startd.drain()
    assert [] == ours(pool)
