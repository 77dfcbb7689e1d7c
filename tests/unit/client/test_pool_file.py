"""How a client finds its pool."""

import fcntl
import stat
from pathlib import Path

import msgspec
import pytest

from kettle.client import ClientError, JobId, PoolFile, PoolNotFoundError, job_id, select
from kettle.client.connections.condor_config import CondorConfig, pool_of
from kettle.client.connections.locating import locate
from kettle.client.connections.pool_file import home_directory
from kettle.client.short_lived import ShortLivedClient
from kettle.testing.servers.held_port import held_port

POOL = PoolFile(pool="p", nats_url="nats://127.0.0.1:4222", credentials="/c", user="ada")


def test_written_and_read(tmp_path: Path) -> None:
    """The file is its owner's alone, and says the same to the reader."""
    path = POOL.save(tmp_path)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert POOL == PoolFile.load(tmp_path)
    POOL.save(tmp_path)
    assert [path] == list(tmp_path.iterdir())


def test_the_directory_is_looked_at() -> None:
    """`$KETTLE_HOME` beats the usual place."""
    assert Path("/pool") == home_directory({"KETTLE_HOME": "/pool"})
    assert Path.home() / ".kettle" == home_directory({})


def test_what_is_named_beats_what_lies_there(tmp_path: Path) -> None:
    """An argument, then the environment, then the file."""
    POOL.save(tmp_path)
    environ = {"KETTLE_HOME": str(tmp_path)}
    assert POOL == locate(environ)
    named = {**environ, "KETTLE_NATS_URL": "nats://b", "KETTLE_NATS_CREDENTIALS": "/s", "KETTLE_POOL": "q"}
    found = locate(named)
    assert ("nats://b", "/s", "q") == (found.nats_url, found.credentials, found.pool)
    assert "nats://c" == locate(named, nats_url="nats://c").nats_url
    assert POOL == locate(named, home=tmp_path)


def test_a_key_of_ones_own_beats_that_of_the_file(tmp_path: Path) -> None:
    """Only the key is another; a directory that is named has its own."""
    POOL.save(tmp_path)
    environ = {"KETTLE_HOME": str(tmp_path), "KETTLE_NATS_CREDENTIALS": "/mine"}
    assert ("/mine", POOL.nats_url) == (locate(environ).credentials, locate(environ).nats_url)
    assert "/given" == locate(environ, credentials="/given").credentials
    assert "/c" == locate(environ, home=tmp_path).credentials
    assert "/mine" == pool_of(CondorConfig({}), environ=environ).credentials


def test_a_file_that_was_left_over_is_told_at_once(tmp_path: Path) -> None:
    """
    A pool whose master has ended and whose bus nobody serves is not waited for; while a master holds its lock it is.
    """
    url = f"nats://127.0.0.1:{held_port()}"
    (tmp_path / "master.lock").touch()
    pool = msgspec.structs.replace(POOL, nats_url=url, credentials="", lock=str(tmp_path / "master.lock"))
    client = ShortLivedClient(pool, 600.0)
    with pytest.raises(
        PoolNotFoundError, match=r"its master has ended without removing .*start it with: kettle up"
    ):
        client.run(lambda of: of.jobs())
    assert pool.left_over
    with (tmp_path / "master.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not pool.left_over
    assert not msgspec.structs.replace(pool, lock="/nonexistent/master.lock").left_over


def test_no_pool(tmp_path: Path) -> None:
    """The sentence says what to do."""
    with pytest.raises(PoolNotFoundError, match="start one with: kettle up"):
        locate({"KETTLE_HOME": str(tmp_path)})
    (tmp_path / "pool.json").write_text("{}")
    with pytest.raises(PoolNotFoundError, match="is damaged"):
        PoolFile.load(tmp_path)


def test_ids() -> None:
    """A number is a cluster, a pair is a job."""
    chosen = select("12", "3.4", 5, JobId(6, 7), owners=["ada"], constraint="x")
    assert ([12, 5], [JobId(3, 4), JobId(6, 7)]) == (chosen.clusters, chosen.jobs)
    assert JobId(12, 0) == job_id("12")
    for wrong in ("x", "1.", "1.2.3", "-1", ""):
        with pytest.raises(ClientError, match="is not the id of a job"):
            select(wrong)
