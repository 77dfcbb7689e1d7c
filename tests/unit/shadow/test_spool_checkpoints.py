"""What evicted jobs left for their next run."""

import os
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kettle.transfer.checkpoint_manifest import DIRECTORY, WHERE, manifest_name
from kettle_services.shadow.spool.checkpoints import Spool
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import OutputFile

JOB = JobId(7, 3)


async def fetch(file: OutputFile) -> AsyncIterator[bytes]:
    for number in range(file.size):
        yield b"%d" % (number % 10)


async def broken(file: OutputFile) -> AsyncIterator[bytes]:
    yield b"half"
    raise ValueError("it has fewer bytes")


def small(name: str, data: bytes = b"x") -> OutputFile:
    return OutputFile(name=name, mode=0o640, size=len(data), data=data)


def saved(spool: Spool) -> dict[str, bytes]:
    return {wanted.name: Path(wanted.path).read_bytes() for wanted in spool.saved(JOB)}


async def test_the_newest_attempt_counts(tmp_path: Path) -> None:
    """With its directories; what an earlier one had left is gone."""
    spool = Spool(tmp_path)
    await spool.save(JOB, 1, [small("a"), small("b")], fetch)
    await spool.save(JOB, 2, [small("a", b"new"), OutputFile(name="d/e", mode=0o600, size=12)], fetch)

    assert {"a": b"new", "d/e": b"012345678901"} == saved(spool)
    assert [JOB] == spool.jobs()
    assert all(wanted.saved for wanted in spool.saved(JOB))


async def test_all_or_nothing(tmp_path: Path) -> None:
    """Half of what an attempt left is nothing: the next run begins with what there was before."""
    spool = Spool(tmp_path)
    await spool.save(JOB, 1, [small("a")], fetch)
    with pytest.raises(ValueError, match="fewer bytes"):
        await spool.save(JOB, 2, [small("b"), OutputFile(name="c", mode=0o600, size=9)], broken)

    assert {"a": b"x"} == saved(spool)


async def test_a_worker_cannot_choose_the_place(tmp_path: Path) -> None:
    """A name that leads out of the sandbox is refused."""
    spool = Spool(tmp_path / "spool")
    with pytest.raises(ValueError, match="outside"):
        await spool.save(JOB, 1, [small("../../x")], fetch)
    assert [] == spool.saved(JOB)


async def test_a_job_that_is_over_leaves_nothing(tmp_path: Path) -> None:
    """Its directory goes, and dropping it again does no harm."""
    spool = Spool(tmp_path / "spool")
    assert [] == spool.jobs()
    await spool.save(JOB, 1, [small("a")], fetch)
    spool.drop(JOB)
    spool.drop(JOB)
    assert ([], []) == (spool.jobs(), spool.saved(JOB))


async def test_what_was_there_before_goes_when_the_new_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Files first, then their directories, the rename and the directory that it is in; nothing of it on the loop's thread.
    """
    done: list[str] = []
    removed, renamed = shutil.rmtree, Path.rename

    def flushed(fd: int) -> None:
        assert threading.current_thread() is not threading.main_thread()
        done.append(f"flush {Path(f'/proc/self/fd/{fd}').readlink().relative_to(tmp_path)}")

    def rename(path: Path, target: Path) -> Path:
        if ".part" in path.name and not path.name.startswith("."):
            done.append(f"rename {path.name}")
        return renamed(path, target)

    def rmtree(path: Path, *, ignore_errors: bool) -> None:
        if path.exists():
            done.append(f"remove {path.name}")
        removed(path, ignore_errors=ignore_errors)

    spool = Spool(tmp_path / "spool")
    await spool.save(JOB, 1, [small("a")], fetch)
    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    monkeypatch.setattr(Path, "rename", rename)
    await spool.save(JOB, 1, [small("d/a"), OutputFile(name="b", mode=0o600, size=3)], fetch)

    assert [
        "flush spool/7.3/1-2.part/d/a",
        "flush spool/7.3/1-2.part/d",
        "flush spool/7.3/1-2.part/b",
        "flush spool/7.3/1-2.part",
        "rename 1-2.part",
        "flush spool/7.3",
        "flush spool",
        "flush .",
        "remove 1-1",
    ] == done


async def test_an_attempt_that_comes_late_takes_nothing_from_a_newer_one(tmp_path: Path) -> None:
    """What the newer one has saved stays, and so does what is arriving of it."""
    spool = Spool(tmp_path)
    await spool.save(JOB, 2, [small("a", b"new")], fetch)
    (tmp_path / str(JOB) / "2-2.part").mkdir()
    await spool.save(JOB, 1, [small("a", b"old")], fetch)

    assert {"a": b"new"} == saved(spool)
    assert (tmp_path / str(JOB) / "2-2.part").is_dir()


def remote(number: int, where: str = "x://h/j/{number:04}") -> list[OutputFile]:
    """What the pool keeps of a checkpoint at a URL."""
    manifest = f"{DIRECTORY}/{manifest_name(number)}"
    return [small(WHERE, where.format(number=number).encode()), small(manifest, b"sums")]


def condemned(spool: Spool) -> set[str]:
    """URLs below which checkpoints are to be removed."""
    if not spool.condemned.is_dir():
        return set()
    return {(place / "URL").read_text() for place in spool.condemned.iterdir()}


async def test_a_checkpoint_elsewhere_is_condemned_when_it_has_a_successor(tmp_path: Path) -> None:
    """And the last one when its job is over; the task that removes them is woken."""
    woken: list[None] = []
    spool = Spool(tmp_path / "spool", condemns=lambda: woken.append(None))
    await spool.save(JOB, 1, [*remote(0), small("out")], fetch)
    assert (set(), 0) == (condemned(spool), len(woken))
    await spool.save(JOB, 2, remote(1), fetch)
    assert ({"x://h/j/0000"}, 1) == (condemned(spool), len(woken))
    spool.drop(JOB)

    assert ({"x://h/j/0000", "x://h/j/0001"}, 2) == (condemned(spool), len(woken))
    assert [] == spool.jobs()


async def test_the_same_checkpoint_said_twice_stays(tmp_path: Path) -> None:
    """A worker that has not heard that it is saved sends it again with the report of an eviction."""
    spool = Spool(tmp_path / "spool")
    await spool.save(JOB, 1, remote(0), fetch)
    await spool.save(JOB, 1, remote(0), fetch)

    assert set() == condemned(spool)
    assert {WHERE, f"{DIRECTORY}/{manifest_name(0)}"} == saved(spool).keys()
