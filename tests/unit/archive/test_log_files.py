"""Logs that are in files alone: written, read back, brought into a log."""

from pathlib import Path

import msgspec
import pytest

from kettle.archive import (
    ArchivedLog,
    ArchiveError,
    DamagedArchiveError,
    LogFiles,
    archived_frames,
    archived_shards,
)
from kettle.archive.manifest import NAME, Manifest
from kettle.eventsourcing.log import IMPORTED, LogError
from kettle.eventsourcing.memory import MemoryLog
from kettle_services.cli.log.importing import imported
from kettle_wire.events import Event, JobHeld, JobReleased, encode
from kettle_wire.frames import Frame

SHARD = "schedd.simulated"
_HELD: list[tuple[str, Event]] = [
    (f"job/1.{proc}", JobHeld(code=1, subcode=0, reason=f"number {proc}")) for proc in range(3)
]
_RELEASED: list[tuple[str, Event]] = [("job/1.1", JobReleased(reason="go on"))]


def _written(directory: Path, *, piece_events: int = 1 << 24) -> None:
    with LogFiles(directory, SHARD, piece_events=piece_events) as files:
        files.append(1_000_000, _HELD)
        files.append(2_500_000, _RELEASED)


async def _frames(directory: Path) -> list[Frame]:
    return [frame async for frame in archived_frames(directory, SHARD)]


async def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    _written(tmp_path)
    first, second = await _frames(tmp_path)
    assert archived_shards(tmp_path) == [SHARD]
    assert [(f.number, f.position, f.at, f.epoch) for f in (first, second)] == [
        (1, 1, 1_000_000, 1),
        (2, 4, 2_500_000, 1),
    ]
    assert [entry.data for entry in first.entries] == [encode(event) for _, event in _HELD]
    assert [(e.stream, e.version, e.type) for e in second.entries] == [("job/1.1", 2, "job.released/1")]


async def test_a_frame_may_be_in_two_pieces(tmp_path: Path) -> None:
    _written(tmp_path / "one")
    _written(tmp_path / "pieces", piece_events=2)
    assert len(list((tmp_path / "pieces" / SHARD).glob("*.events.parquet"))) == 3
    assert await _frames(tmp_path / "pieces") == await _frames(tmp_path / "one")


@pytest.mark.parametrize("piece_events", [2, 1 << 24])
async def test_files_are_read_as_a_log(tmp_path: Path, piece_events: int) -> None:
    """A part of it, or one stream; also if its frames are in several pieces."""
    _written(tmp_path, piece_events=piece_events)
    log, whole = ArchivedLog(tmp_path), await _frames(tmp_path)
    [tenure] = await log.shards()
    assert (tenure.shard, tenure.frame, tenure.head, tenure.owner) == (SHARD, 2, 4, IMPORTED)
    assert (await log.tenure(SHARD), await log.tenure("schedd.other")) == (tenure, None)
    parts = [(0, 1), (1, 2), (1, None), (0, None), (2, None)]
    found = [[frame async for frame in log.read(SHARD, after=after, until=until)] for after, until in parts]
    assert found == [whole[:1], whole[1:], whole[1:], whole, []]
    held, released = await log.stream(SHARD, "job/1.1")
    assert [(frame.number, position) for frame, position in (held, released)] == [(1, 2), (2, 4)]
    assert [released[0].entries[0].data] == [encode(event) for _, event in _RELEASED]
    with pytest.raises(ArchiveError):
        await ArchivedLog(tmp_path / "elsewhere").shards()


def test_the_same_events_are_the_same_bytes(tmp_path: Path) -> None:
    found: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        _written(tmp_path / name)
        found.append({path.name: path.read_bytes() for path in (tmp_path / name / SHARD).iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_after_an_error_there_is_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with LogFiles(tmp_path, SHARD, piece_events=2) as files:
            files.append(1, [("job/1.0", JobReleased(reason=""))])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        interrupted()
    assert list((tmp_path / SHARD).iterdir()) == []


def test_what_is_there_is_not_mixed_with_what_is_new(tmp_path: Path) -> None:
    _written(tmp_path)
    with pytest.raises(ArchiveError, match="holds events already"):
        _written(tmp_path)
    with pytest.raises(ArchiveError, match="is no archive of events"):
        archived_shards(tmp_path / SHARD)


async def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    _written(tmp_path)
    (events,) = (tmp_path / SHARD).glob("*.events.parquet")
    events.write_bytes(events.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedArchiveError, match="SHA-256"):
        await _frames(tmp_path)


@pytest.mark.parametrize(("lost", "after"), [(0, 0), (1, 1)])
async def test_a_log_with_a_gap_is_refused_with_its_place(tmp_path: Path, lost: int, after: int) -> None:
    """Nobody who reads it gets what comes behind the gap, the simulator neither."""
    _written(tmp_path, piece_events=2)
    path = tmp_path / SHARD / NAME
    manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    del manifest.pieces[lost]
    path.write_bytes(msgspec.json.encode(manifest))
    with pytest.raises(
        DamagedArchiveError, match=f"does not follow position {after}: it is not the whole log"
    ):
        await _frames(tmp_path)


async def test_a_log_takes_it_in_once(tmp_path: Path) -> None:
    _written(tmp_path)
    log = MemoryLog()
    assert (await imported(log, tmp_path, SHARD, _nowhere)).events == 4
    assert (await imported(log, tmp_path, SHARD, _nowhere)).events == 0
    brought = [frame async for frame in log.read(SHARD)]
    assert brought == await _frames(tmp_path)


async def test_an_interrupted_import_goes_on(tmp_path: Path) -> None:
    _written(tmp_path)
    log = MemoryLog()
    first, _ = await _frames(tmp_path)
    await log.take(SHARD, owner=IMPORTED)
    await log.append(first)
    done = await imported(log, tmp_path, SHARD, _nowhere)
    assert (done.frames, done.events) == (1, 1)


async def test_another_log_of_that_name_is_left_alone(tmp_path: Path) -> None:
    _written(tmp_path / "one")
    log = MemoryLog()
    await log.take(SHARD, owner="a schedd")
    with pytest.raises(LogError, match="already, of a schedd"):
        await imported(log, tmp_path / "one", SHARD, _nowhere)
    other = MemoryLog()
    await imported(other, tmp_path / "one", SHARD, _nowhere)
    with LogFiles(tmp_path / "two", SHARD) as files:
        files.append(1_000_000, _HELD)
        files.append(2_500_001, _RELEASED)
    with pytest.raises(LogError, match="something else was imported"):
        await imported(other, tmp_path / "two", SHARD, _nowhere)


def _nowhere(name: str, done: int, total: int) -> None:
    """Nobody looks."""
