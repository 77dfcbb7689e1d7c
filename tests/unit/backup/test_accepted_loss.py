"""What is done with streams whose frames are given up."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kettle.backup import restoring
from kettle.backup.bus_heads import BusPlace
from kettle.backup.errors import BackupError, BusAheadOfBackupError, StreamAhead
from kettle.backup.manifest import Manifest, ShardHead, part_of
from kettle.backup.restoring import Servers, Target, restore
from kettle.bus.ports import BusError

AHEAD = StreamAhead("KETTLE_p_schedd", "schedd.a", 9, 7)
HEADS = [ShardHead("schedd.a", 1, 7, 20)]


class Bus:
    """A bus of the site, whose streams can be deleted, if the credential may."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.refuses = False

    async def delete_stream(self, name: str) -> None:
        if self.refuses:
            raise BusError("permissions violation")
        self.deleted.append(name)


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    found = Bus()

    @asynccontextmanager
    async def bus_of(_home: Path, _place: BusPlace) -> AsyncGenerator[Bus]:
        yield found

    async def ahead(*_: object) -> list[StreamAhead]:
        return [AHEAD]

    async def load(*_: object, **_more: object) -> list[ShardHead]:
        return HEADS

    monkeypatch.setattr(restoring, "bus_of", bus_of)
    monkeypatch.setattr(restoring, "ahead", ahead)

    async def require_no_log(_: str) -> None:
        """The database is empty."""

    monkeypatch.setattr(restoring, "load", load)
    monkeypatch.setattr(restoring, "require_no_log", require_no_log)
    return found


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    directory = tmp_path / "backup"
    directory.mkdir()
    for name in ("files.tar", "files-later.tar", "secrets.tar"):
        (directory / name).write_bytes(bytes(10240))  # the end of an archive, of an empty one
    (directory / "database.dump").write_bytes(b"")
    Manifest(
        kettle="0", pool="p", pool_id="1", at="", host="", postgres="", database="kettle", shards=HEADS, migrations=[],
        settings=[], outside=[], elsewhere=0, parts=[part_of(path) for path in directory.iterdir()],
    ).save(directory)  # fmt: skip
    return directory


def of_the_site(home: Path, *, accept_loss: bool) -> Target:
    servers = Servers(bus=BusPlace(pool="p", url="nats://bus"), database_url="postgresql://db/kettle")
    return Target(home=home, servers=lambda _: servers, accept_loss=accept_loss)


async def test_streams_of_a_bus_of_the_site_are_deleted(bus: Bus, backup: Path, tmp_path: Path) -> None:
    """There is nothing of that bus in the pool's directory, and the pool is back."""
    home = tmp_path / "home"
    done = await restore(backup, of_the_site(home, accept_loss=True))
    assert [AHEAD.stream] == bus.deleted
    assert ([AHEAD], HEADS) == (done.lost, done.shards)
    assert "1\n" == (home / "pool.id").read_text()


async def test_nothing_is_deleted_unasked(bus: Bus, backup: Path, tmp_path: Path) -> None:
    """The refusal says what can be done."""
    with pytest.raises(BusAheadOfBackupError, match="--accept-loss"):
        await restore(backup, of_the_site(tmp_path / "home", accept_loss=False))
    assert [] == bus.deleted


async def test_the_bus_of_a_pool_that_has_its_database_loses_nothing(
    bus: Bus, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may run on another machine: that a database is refused is known before anything is deleted."""

    async def refused(_: str, *_more: object, **_also: object) -> None:
        raise BackupError("there is a log in the database already")

    monkeypatch.setattr(restoring, "require_no_log", refused)
    monkeypatch.setattr(restoring, "load", refused)
    with pytest.raises(BackupError, match="already"):
        await restore(backup, of_the_site(tmp_path / "home", accept_loss=True))
    assert [] == bus.deleted


async def test_nothing_is_deleted_before_the_log_is_back(
    bus: Bus, backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    A load that fails leaves the streams, which may then be all that is known, and a directory without anything.
    """

    async def failed(*_: object, **_more: object) -> None:
        assert [] == bus.deleted
        raise BackupError("the disk is full")

    monkeypatch.setattr(restoring, "load", failed)
    home = tmp_path / "home"
    with pytest.raises(BackupError, match="disk is full"):
        await restore(backup, of_the_site(home, accept_loss=True))
    assert ([], []) == (bus.deleted, list(home.iterdir()))


async def test_a_stream_that_cannot_be_deleted_is_told_of_and_the_pool_is_back(
    bus: Bus, backup: Path, tmp_path: Path
) -> None:
    """
    The log is in the database, so its keys stay; the sentence says which streams have to go before the start.
    """
    bus.refuses = True
    home = tmp_path / "home"
    with pytest.raises(
        BackupError, match=f"is restored, but the stream {AHEAD.stream}.*before the pool is started"
    ):
        await restore(backup, of_the_site(home, accept_loss=True))
    assert "1\n" == (home / "pool.id").read_text()
