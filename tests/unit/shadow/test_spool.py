"""
What evicted jobs left for their next run.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kettle.shadow.spool import Spool
from kettle.wire.jobs import JobId
from kettle.wire.work import OutputFile

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
    """
    With its directories; what an earlier one had left is gone.
    """
    spool = Spool(tmp_path)
    await spool.save(JOB, 1, [small("a"), small("b")], fetch)
    await spool.save(JOB, 2, [small("a", b"new"), OutputFile(name="d/e", mode=0o600, size=12)], fetch)

    assert {"a": b"new", "d/e": b"012345678901"} == saved(spool)
    assert [JOB] == spool.jobs()
    assert all(wanted.saved for wanted in spool.saved(JOB))


async def test_all_or_nothing(tmp_path: Path) -> None:
    """
    Half of what an attempt left is nothing: the next run begins with what there was before.
    """
    spool = Spool(tmp_path)
    await spool.save(JOB, 1, [small("a")], fetch)
    with pytest.raises(ValueError, match="fewer bytes"):
        await spool.save(JOB, 2, [small("b"), OutputFile(name="c", mode=0o600, size=9)], broken)

    assert {"a": b"x"} == saved(spool)


async def test_a_worker_cannot_choose_the_place(tmp_path: Path) -> None:
    """
    A name that leads out of the sandbox is refused.
    """
    spool = Spool(tmp_path / "spool")
    with pytest.raises(ValueError, match="outside"):
        await spool.save(JOB, 1, [small("../../x")], fetch)
    assert [] == spool.saved(JOB)


async def test_a_job_that_is_over_leaves_nothing(tmp_path: Path) -> None:
    """
    Its directory goes, and dropping it again does no harm.
    """
    spool = Spool(tmp_path / "spool")
    assert [] == spool.jobs()
    await spool.save(JOB, 1, [small("a")], fetch)
    spool.drop(JOB)
    spool.drop(JOB)
    assert ([], []) == (spool.jobs(), spool.saved(JOB))
