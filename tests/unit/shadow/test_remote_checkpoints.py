"""Checkpoints at a URL as the submit side sees them: which are believed, and how they are removed."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from kettle.retry.backoff import steady
from kettle.testing.patience import PATIENCE_S
from kettle.transfer.checkpoint_manifest import DIRECTORY, WHERE, CheckpointError, Entry, line
from kettle.transfer.file_lists import ManifestError
from kettle_services.shadow.domain.transfer_checks import check_checkpoint, check_outputs
from kettle_services.shadow.files.access import FileAccess, OwnFileError
from kettle_services.shadow.spool import checkpoint_cleanup
from kettle_services.shadow.spool.checkpoint_cleanup import Cleaner
from kettle_services.shadow.spool.file_removal import remove_files
from kettle_wire.ads import Ad
from kettle_wire.worker_reports import OutputFile

AD: Ad = {"CheckpointDestination": "https://h/ckpt/", "GlobalJobId": "s#7.0#1"}
RIGHT = b"https://h/ckpt/s_7.0_1/0002"
MANIFEST = f"{DIRECTORY}/MANIFEST.0002"


def output(name: str, data: bytes | None) -> OutputFile:
    return OutputFile(name=name, mode=0o600, size=len(data or b"x"), data=data)


def test_a_checkpoint_is_where_the_job_wants_it() -> None:
    """One whose manifest is large has it fetched; other files are no matter."""
    for data in (b"sums", None):
        check_checkpoint(AD, [output("out", b"x"), output(WHERE, RIGHT), output(MANIFEST, data)])
    check_checkpoint({}, [output("out", b"x"), output("MANIFEST.0002", b"x")])


@pytest.mark.parametrize(
    ("ad", "files"),
    [
        (AD, [output(WHERE, b"https://h/other/0002"), output(MANIFEST, b"sums")]),
        (AD, [output(WHERE, b"https://h/ckpt/s_7.0_1/0001"), output(MANIFEST, b"sums")]),
        (AD, [output(WHERE, RIGHT)]),
        (AD, [output(WHERE, None), output(MANIFEST, b"sums")]),
        (AD, [output(MANIFEST, b"sums")]),
        (
            AD,
            [output(WHERE, RIGHT), output(MANIFEST, b"sums"), output(f"{DIRECTORY}/MANIFEST.0003", b"sums")],
        ),
        (AD, [output(WHERE, RIGHT), output(MANIFEST, b"sums"), output(f"{DIRECTORY}/x", b"")]),
        ({}, [output(WHERE, b"/s_7.0_1/0002"), output(MANIFEST, b"sums")]),
    ],
)
def test_no_worker_says_what_is_removed_later(ad: Ad, files: list[OutputFile]) -> None:
    """What is kept as the place of a checkpoint is deleted one day, with the owner's rights."""
    with pytest.raises(ValueError, match="not where the job's checkpoints go"):
        check_checkpoint(ad, files)


def condemned(directory: Path, name: str, where: str, *names: str) -> None:
    """Have a checkpoint that is to be removed."""
    place = directory / name
    place.mkdir(parents=True)
    (place / "URL").write_text(where)
    text = "".join(line(Entry(each, "0" * 64)) for each in names)
    own = Entry("MANIFEST.0001", hashlib.sha256(text.encode()).hexdigest())
    (place / own.name).write_text(text + line(own))


async def test_what_is_condemned_goes_and_nothing_else(tmp_path: Path) -> None:
    """
    No link that a job has put there is followed; what nothing here removes, or nobody understands, is given up.
    """
    there, list_ = tmp_path / "there", tmp_path / "condemned"
    for name in ("good/0001/a/b", "good/0001/MANIFEST.0001", "other/keep", "bad/0001/x", "precious/file"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text("x")
    (there / "bad" / "0001" / "link").symlink_to(there / "precious")
    condemned(list_, "1", f"file://{there}/good/0001", "a/b", "gone")
    condemned(list_, "2", f"file://{there}/bad/0001", "link/file")
    condemned(list_, "3", "x://h/y/0001", "z")
    (list_ / "4").mkdir()
    cleaner = Cleaner(list_, lambda _: FileAccess(tmp_path / "home"))
    running = asyncio.create_task(cleaner.run())
    async with asyncio.timeout(PATIENCE_S):
        while {path.name for path in list_.iterdir()} != {"2"}:
            await asyncio.sleep(0.02)
    running.cancel()

    found = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert {"other/keep", "bad/0001/x", "precious/file"} == found
    assert not (there / "good").exists()


async def settled(cleaner: Cleaner, list_: Path) -> None:
    """Until nothing is condemned any more."""
    running = asyncio.create_task(cleaner.run())
    async with asyncio.timeout(PATIENCE_S):
        while list(list_.iterdir()):
            await asyncio.sleep(0.02)
    running.cancel()


async def test_no_url_removes_something_else(tmp_path: Path) -> None:
    """
    Given a URL in which a query begins, one that leads upwards and one into the pool's directory, nothing is removed.
    """
    list_, home = tmp_path / "condemned", tmp_path / "home"
    for name in ("key", "home/job/0001/state"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("precious")
    condemned(list_, "1", f"file://{tmp_path}/key?/job/0001", "state")
    condemned(list_, "2", f"file://{tmp_path}/x/../home/job/0001", "state")
    condemned(list_, "3", f"file://{home}/job/0001", "state")
    await settled(Cleaner(list_, lambda _: FileAccess(home)), list_)

    assert "precious" == (tmp_path / "key").read_text()
    assert "precious" == (home / "job/0001/state").read_text()
    with pytest.raises(OwnFileError):
        remove_files(f"file://{home}/job/0001", ["state"], FileAccess(home))
    with pytest.raises(ManifestError, match="a path only"):
        check_outputs({"CheckpointDestination": f"file://{tmp_path}/key?"})
    with pytest.raises(CheckpointError):
        check_checkpoint({**AD, "CheckpointDestination": "https://h/x?"}, [output(MANIFEST, b"x")])


def test_a_link_that_is_made_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Given a directory that a job exchanges for a link between two files, when the rest is removed, then nothing beyond it.
    """
    place = tmp_path / "ckpt/job/0001"
    (place / "d").mkdir(parents=True)
    (tmp_path / "precious").mkdir()
    for name in ("ckpt/job/0001/d/a", "ckpt/job/0001/d/b", "precious/b"):
        (tmp_path / name).write_text("x")
    unlink = os.unlink

    def exchanging(name: str, *, dir_fd: int) -> None:
        unlink(name, dir_fd=dir_fd)
        if name == "a":
            (place / "d").rename(place / "e")
            (place / "d").symlink_to(tmp_path / "precious")

    monkeypatch.setattr(os, "unlink", exchanging)
    with pytest.raises(NotADirectoryError, match="reached by a link"):
        remove_files(f"file://{place}", ["d/a", "d/b"], FileAccess(tmp_path / "home"))

    assert (tmp_path / "precious/b").exists()
    assert (place / "e/b").exists()


def test_what_is_removed_leaves_no_empty_directories(tmp_path: Path) -> None:
    """
    But the job's directory stays while another checkpoint is in it; again, or with nothing there, it is done already.
    """
    for name in ("0001/a b/%41", "0001/MANIFEST.0001", "0002/x"):
        (tmp_path / "ckpt/job" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ckpt/job" / name).write_text("x")
    where = f"file://{tmp_path}/ckpt/job/0001"
    for _ in range(2):
        remove_files(where, ["a b/%41", "MANIFEST.0001"], FileAccess(tmp_path / "home"))
    remove_files("file:///nonexistent/job/0001", ["x"], FileAccess(tmp_path / "home"))

    assert ["0002"] == [path.name for path in (tmp_path / "ckpt/job").iterdir()]


async def test_a_server_that_never_comes_back_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After so many tries it is given up, with the URL in the log for the administrator."""
    monkeypatch.setattr(checkpoint_cleanup, "_TRIES", 2)
    monkeypatch.setattr(checkpoint_cleanup, "_BACKOFF", steady(0.01))
    (tmp_path / "ckpt").write_text("not a directory")
    list_ = tmp_path / "condemned"
    where = f"file://{tmp_path}/ckpt/x/job/0001"
    condemned(list_, "1", where, "state")
    await settled(Cleaner(list_, lambda _: FileAccess(tmp_path / "home")), list_)

    said = [record.getMessage() for record in caplog.records]
    assert ["checkpoint not removed yet: 1", f"given up, remove it yourself: {where}"] == said
