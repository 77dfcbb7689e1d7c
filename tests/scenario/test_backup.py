"""
Backups of real pools: made while they run, proved without them, restored on machines that have nothing of
them.
"""

import asyncio
import os
import stat
from pathlib import Path

import msgspec
import pytest

from kettle.backup import BusAheadOfBackupError, Manifest, Target, restore
from kettle.backup.bus_heads import BusPlace
from kettle.backup.restoring import Servers
from kettle.client import PoolFile, select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

LONG = "KETTLE_TEST_LONG"
JOBS = int(os.environ.get("KETTLE_TEST_BACKUP_JOBS", "100000"))
WITHIN_S = 3600.0
DESCRIPTION = "executable = /bin/true\nrequest_memory = 16\n"


async def run_jobs(pool: ThrowawayPool, count: int, more: str = "") -> int:
    submitted = await pool.client.submit(f"{DESCRIPTION}{more}queue {count}\n", cwd=pool.home.parent)
    return submitted.cluster


async def test_a_backup_of_a_running_pool(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    It is proved without the pool, holds what was recorded, is private, and is not restored over what the bus knows besides.
    """
    directory, phrase = tmp_path / "backup", tmp_path / "phrase"
    phrase.write_text("correct horse battery\n")
    phrase.chmod(0o600)
    cluster = await run_jobs(pool, 1, "hold = true\n")
    sealed = ("--passphrase-file", str(phrase))
    made = await pool.kettle("backup", "create", str(directory), *sealed, "--json")
    assert 0 == made.status, made.err
    assert not [path for path in (directory, *directory.iterdir()) if path.stat().st_mode & 0o077]

    good = await pool.kettle("backup", "verify", str(directory), *sealed)
    assert (0, True) == (good.status, "is good" in good.out), good
    unread = await pool.kettle("backup", "verify", str(directory), "--quick")
    assert (0, True) == (unread.status, "were not looked at" in unread.err), unread
    again = await pool.kettle("backup", "create", str(directory), *sealed)
    assert (1, True) == (again.status, "exists" in again.err), again

    heads = {each.shard: each.frame for each in Manifest.load(directory).shards}
    await pool.client.remove(select(cluster))  # what is recorded now is on the bus and not in the backup
    own = PoolFile.load(pool.home)
    audit = pool.home / "credentials" / "audit.creds"
    shown = str(audit) if audit.exists() else own.credentials
    place = BusPlace(pool=own.pool, url=own.nats_url, credentials=shown, ca=own.ca)
    home = tmp_path / "home"
    beside = Target(home=home, servers=lambda _: Servers(bus=place))
    with pytest.raises(BusAheadOfBackupError, match=r"newer backup.*--accept-loss") as refused:
        await restore(directory, beside, passphrase=b"correct horse battery")
    assert own.schedd in {each.shard.partition(".")[2] for each in refused.value.ahead}
    assert [] == list(home.iterdir())

    alone = Target(home=home, servers=lambda _: Servers(bus=BusPlace(pool=own.pool)))
    restored = await restore(directory, alone, passphrase=b"correct horse battery")
    assert heads == {each.shard: each.frame for each in restored.shards}
    assert (pool.home / "pool.id").read_text() == (home / "pool.id").read_text()
    for path in (home / "credentials").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
    other = await pool.kettle("backup", "restore", str(directory), *sealed, "--home", str(home))
    assert (1, True) == (other.status, "has a database" in other.err), other


@pytest.mark.skipif(
    LONG not in os.environ, reason=f"it takes minutes: a pool of {JOBS} jobs ({LONG}=1 runs them)"
)
async def test_a_pool_is_destroyed_and_back(tmp_path: Path) -> None:
    """
    Jobs that are over, that run and that wait are all there again, on another directory with servers of its own; the log is
    clean, and the jobs end.
    """
    environ = {"PATH": os.environ["PATH"]}
    directory = tmp_path / "backup"
    loop = asyncio.get_running_loop()
    async with throwaway_pool(tmp_path, cpus=16, environ=environ, home=tmp_path / "first") as pool:
        over = await run_jobs(pool, JOBS // 5)
        waiting = await run_jobs(pool, JOBS - JOBS // 5, "hold = true\n")
        await pool.client.wait(select(over))
        running = (
            await pool.client.submit(f"{DESCRIPTION.replace('true', 'sleep')}arguments = 5\nqueue 4\n")
        ).cluster
        began = loop.time()
        made = await pool.kettle("backup", "create", str(directory), within_s=WITHIN_S)
        create_s = loop.time() - began
        assert 0 == made.status, made.err
        settings = pool.settings
        pool.kill_master()
    manifest = Manifest.load(directory)
    began = loop.time()
    home = tmp_path / "second"
    restored = await restore(
        directory, Target(home=home, servers=lambda _: Servers(bus=BusPlace(pool=manifest.pool)))
    )
    restore_s = loop.time() - began
    began = loop.time()
    async with throwaway_pool(tmp_path, cpus=16, settings=settings, environ=environ, home=home) as back:
        up_s = loop.time() - began
        totals = await back.client.totals(select(waiting))
        assert JOBS - JOBS // 5 == totals.statuses.get("held"), totals
        await back.client.wait(select(running))
        began = loop.time()
        audit = await back.log_check(within_s=WITHIN_S)
        assert audit.clean, audit.said
        figures = {
            "jobs": JOBS, "create_s": create_s, "restore_s": restore_s, "up_s": up_s,
            "audit_s": loop.time() - began, "bytes": sum(part.size for part in restored.manifest.parts),
        }  # fmt: skip
        (tmp_path / "figures.json").write_bytes(msgspec.json.encode(figures))
