"""Which files of a job people are given, and with whose rights these are read."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.accounts.rights import Rights
from kettle.bus.ports import RefusedError
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.outputs import JobResults
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

JOB = JobId(1, 0)
ADA = Rights(70_002, 70_002)


def results(work: Path, access: FileAccess, **other: str) -> JobResults:
    ad: Ad = {"Owner": "ada", "Iwd": str(work), "Out": "out", "TransferOutput": "result, deep"}
    return JobResults(JOB, {**ad, **other}, access)


@pytest.fixture
def work() -> Iterator[Path]:
    """A directory that everybody can enter, with the results of a job and other files beside them."""
    directory = Path(tempfile.mkdtemp(prefix="kettle-results-"))
    directory.chmod(0o755)
    (directory / "deep" / "er").mkdir(parents=True)
    for name in ("out", "result", "deep/er/below", "beside"):
        (directory / name).write_text(name)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def test_a_job_has_left_what_it_names(work: Path, tmp_path: Path) -> None:
    """
    Its streams, files and directories, by their names in the sandbox; what lies beside them is none of it.
    """
    left = results(work, FileAccess(tmp_path))
    assert ["_condor_stdout", "deep/er/below", "result"] == [file.name for file in left.files()]
    assert b"er/below" == left.read("deep/er/below", 5, 100).data
    for name in ("beside", "deeper", "deep/../beside", "/etc/passwd", "", "result/.."):
        with pytest.raises(RefusedError, match="has left no file"):
            left.read(name, 0, 100)


def test_a_result_is_where_it_was_sent(work: Path, tmp_path: Path) -> None:
    """One with another name is found there, and one at a URL is not here."""
    moved = results(work, FileAccess(tmp_path), TransferOutputRemaps=f"result={work}/beside")
    assert b"beside" == moved.read("result", 0, 100).data
    away = results(work, FileAccess(tmp_path), TransferOutputRemaps="result=https://example.org/result")
    with pytest.raises(RefusedError):
        away.read("result", 0, 100)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_what_the_owner_may_not_read_is_not_read_for_the_owner(work: Path, tmp_path: Path) -> None:
    """
    A link in the place of a result leads as far as the owner's own rights do, and never into the pool's directory.
    """
    left = results(work, FileAccess(tmp_path).of_owner("ada", ADA))
    secret, own, key = work / "secret", work / "own", tmp_path / "key"
    for path in (secret, own, key):
        path.write_text(path.name)
        path.chmod(0o600)
    os.chown(own, ADA.uid, ADA.gid)
    for target in (secret, key, Path("/proc/self/environ")):
        (work / "result").unlink()
        (work / "result").symlink_to(target)
        with pytest.raises(OSError, match=str(work)):
            left.read("result", 0, 100)
        if target != secret:
            assert "result" not in [file.name for file in left.files()]
    (work / "result").unlink()
    (work / "result").symlink_to(own)
    assert b"own" == left.read("result", 0, 100).data


def test_a_job_of_nobody_here_reads_nothing_of_the_pools_own_directory(tmp_path: Path) -> None:
    """
    Neither an edited ad nor a link leads out of the directory that was made for it: not to what an evicted job of somebody
    else has left, not to the input files of others, and not to what everybody may read.
    """
    saved, spooled = tmp_path / "spool", SpooledFiles(tmp_path / "spooled", most=1)
    own, others = spooled.directory(JOB), spooled.root / "7" / "objects"
    secrets = [saved / "7.0" / "1-1" / "state", others / "input", tmp_path / "key", Path("/etc/hosts")]
    for directory in (own, saved / "7.0" / "1-1", others):
        directory.mkdir(parents=True)
    for path in secrets[:-1]:
        path.write_text("secret")
    (own / "result").write_text("result")
    places = FileAccess(tmp_path, spools=[saved, spooled.root])
    access = spooled.places(JOB, places, confined=True)
    for number, path in enumerate(secrets):
        (own / f"link{number}").symlink_to(path)
        edited: Ad = {"StageInStart": 1, "Iwd": str(path.parent), "TransferOutputRemaps": f"x={path}"}
        left = JobResults.of(JOB, edited, access, spooled)
        for name in ("x", f"link{number}"):
            with pytest.raises(PermissionError):
                left.read(name, 0, 100)
        assert ["result"] == [file.name for file in left.files()]
        assert b"result" == left.read("result", 0, 100).data
