"""
What is wrong with the files of an archive is said, with the file, the hash that was expected and what to do.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kettle.archive import DamagedArchiveError, FileArchives, archive, verify
from kettle.archive.manifest import read_manifest
from kettle.storage import PgLog

from .conftest import LATER, frames, put


@pytest.fixture
async def files(log: PgLog, directory: Path) -> list[Path]:
    """The files with the events of an archive, by piece."""
    await put(log, frames("s", [20] * 20))
    await archive(log.database, directory, older_than=LATER)
    return [directory / piece.events.path for piece in read_manifest(directory, "s").pieces]


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[list[Path]], object]] = {
    "missing": lambda files: files[2].unlink(),
    "another piece": lambda files: shutil.copy(files[3], files[2]),
    "a bit": lambda files: flip(files[2], 600),
    "cut off": lambda files: files[2].write_bytes(files[2].read_bytes()[:-100]),
    "empty": lambda files: files[2].write_bytes(b""),
    "a directory": lambda files: shutil.copytree(
        files[2].parent, files[2].rename(files[2].with_suffix(".old")).with_suffix(".parquet")
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_a_damaged_file_stops_every_reader(
    dsn: str, log: PgLog, directory: Path, files: list[Path], damage: Callable[[list[Path]], object]
) -> None:
    """Nothing is skipped: what is before it is read, then comes the error; `verify` finds it too."""
    expected = read_manifest(directory, "s").pieces[2].events.sha256
    damage(files)
    message = f"{re.escape(str(files[2]))}.*{expected}.*(?s:Bring that file back)"
    async with PgLog.connect(dsn, archives=FileArchives(directory)) as other:
        reader = other.read("s")
        assert list(range(1, 7)) == [(await anext(reader)).number for _ in range(6)]
        with pytest.raises(DamagedArchiveError, match=message):
            await anext(reader)
        with pytest.raises(DamagedArchiveError, match=message):
            await other.stream("s", "job/1.0")
        assert [20] == [f.number async for f in other.read("s", after=19)]
    found = await verify(log.database, directory)
    assert [files[2].name] == [Path(problem.file).name for problem in found.problems]
    assert expected in found.problems[0].sentence


async def test_a_file_that_is_replaced_under_a_running_reader_is_noticed(
    log: PgLog, files: list[Path]
) -> None:
    """A process hashes a file again when it is not the one that it hashed."""
    assert 20 == len([f async for f in log.read("s")])
    shutil.copy(files[3], files[2])
    with pytest.raises(DamagedArchiveError, match=files[2].name):
        [f async for f in log.read("s")]


async def test_a_sound_archive_is_found_sound(log: PgLog, directory: Path, files: list[Path]) -> None:
    """Every file is looked at."""
    seen: list[tuple[int, int]] = []
    found = await verify(log.database, directory, progress=lambda done, total: seen.append((done, total)))
    size = sum(path.stat().st_size for path in directory.rglob("*.parquet"))
    assert (True, len(files), 2 * len(files), size) == (found.sound, found.pieces, found.files, found.bytes)
    assert (size, size) == seen[-1]


async def test_a_manifest_that_says_something_else_is_found(
    log: PgLog, directory: Path, files: list[Path]
) -> None:
    """The manifest can be lost or changed without harm to readers, and `verify` says so."""
    path = directory / "s" / "manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"last_frame": 4', '"last_frame": 5', 1))
    (problem,) = (await verify(log.database, directory)).problems
    assert "piece 0" in problem.sentence
    path.unlink()
    assert len(files) == len((await verify(log.database, directory)).problems)
    path.write_text("{")
    assert len(files) == len((await verify(log.database, directory)).problems)
    assert 20 == len([f async for f in log.read("s")])
