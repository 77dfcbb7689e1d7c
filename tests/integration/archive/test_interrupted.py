"""
An archiver may end anywhere: every piece is in the database or in the archive, and the next one goes on.
"""

import os
import signal
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from kettle.archive import ArchiveError, archive, verify
from kettle.storage import PgLog
from kettle_wire.frames import encode

from .conftest import LATER, archiver, frames, put, tables, unlocked

ALL = frames("s", [20] * 20)
PIECES = 6


@pytest.mark.parametrize(
    ("place", "left"),
    [
        ("archive.written=kill", 0),
        ("archive.written=kill@3", 2),
        ("archive.dropped=kill", 1),
        ("archive.dropped=kill@4", 4),
    ],
)
async def test_an_archiver_that_is_killed_is_taken_up_by_the_next(
    dsn: str, log: PgLog, directory: Path, place: str, left: int
) -> None:
    """Events are there once whatever the moment, and a rerun leaves what an undisturbed run leaves."""
    await put(log, ALL)
    before = await tables(log)
    done = archiver(dsn, directory, KETTLE_FAULT_POINTS=place)
    assert -signal.SIGKILL == done.returncode, done.stderr
    assert before[left:] == await tables(log)
    assert [encode(f) for f in ALL] == [encode(f) async for f in log.read("s")]
    await unlocked(log)
    report = await archive(log.database, directory, older_than=LATER)
    assert list(range(left, PIECES)) == [piece.piece for piece in report.shards[0].archived]
    assert [encode(f) for f in ALL] == [encode(f) async for f in log.read("s")]
    assert (True, PIECES) == ((found := await verify(log.database, directory)).sound, found.pieces)
    assert 2 * PIECES == len(list(directory.rglob("*.parquet")))


async def test_what_a_killed_archiver_left_half_written_is_removed(log: PgLog, directory: Path) -> None:
    """By the next one that writes there."""
    (directory / "s").mkdir(parents=True)
    (directory / "s" / ".0123456789abcdef.tmp").write_bytes(b"half")
    await put(log, ALL)
    await archive(log.database, directory, older_than=LATER)
    assert [] == list(directory.rglob("*.tmp"))


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system with room for one piece."""
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", "size=24k", "tmpfs", str(tmp_path)):
        pytest.skip("only root may mount a small file system; the test with a limit stands for it")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


async def test_a_full_disk_leaves_everything_in_place(log: PgLog, small_disk: Path) -> None:
    """
    What fits is archived, the rest stays in the database, nothing half written is left, and everything can be read.
    """
    await put(log, ALL)
    before = await tables(log)
    with pytest.raises(ArchiveError, match=r"No space left on device\. It stays in the database"):
        await archive(log.database, small_disk, older_than=LATER)
    assert [] == list(small_disk.rglob("*.tmp"))
    left = await tables(log)
    assert 0 < len(left) <= len(before)
    assert left == before[-len(left) :]


async def test_a_limit_of_file_sizes_leaves_everything_in_place(
    dsn: str, log: PgLog, directory: Path
) -> None:
    """Everything is also left in place where a file cannot grow."""
    await put(log, ALL)
    before = await tables(log)
    done = archiver(dsn, directory, limit=2_000)
    assert 1 == done.returncode
    assert "ArchiveError: piece 0 of s cannot be written" in done.stderr
    assert "File too large. It stays in the database." in done.stderr
    assert before == await tables(log)
    assert [] == list(directory.rglob("*.*"))
    assert [encode(f) for f in ALL] == [encode(f) async for f in log.read("s")]


async def test_a_place_that_cannot_be_written_is_said(log: PgLog, tmp_path: Path) -> None:
    """A file where the directory should be."""
    await put(log, ALL)
    (tmp_path / "archive").write_text("")
    with pytest.raises(ArchiveError, match=r"archive/s: the archive cannot be written"):
        await archive(log.database, tmp_path / "archive", older_than=LATER)
