"""Reading what jobs name."""

import os
from pathlib import Path

import pytest

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError
from kettle.userlog import UserLogError
from kettle_services.shadow.file_transfer import input_files as module
from kettle_services.shadow.file_transfer.input_files import InputError, Inputs, Limits, Source
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.projections.job_event_logs import JobAppender
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.ads import Ad
from kettle_wire.commands.shadow import FETCH_INPUT, FetchInput

from .fakes import Side, until

MIB = 1 << 20


def reader(home: Path, *, total: int = 10 * MIB, cache: int = MIB) -> Inputs:
    return Inputs(FileAccess(home), Limits(inline=100, inline_total=250, total=total), cache_bytes=cache)


def job(work: Path, transfer: str) -> Ad:
    return {"Iwd": str(work), "Cmd": "/bin/true", "TransferExecutable": False, "TransferInput": transfer}


async def gather(inputs: Inputs, ad: Ad) -> list[Source]:
    try:
        return await inputs.gather(ad)
    finally:
        inputs.close()


async def test_a_tree_is_transferred(tmp_path: Path) -> None:
    """
    A directory goes with its name, with a slash its contents go; small files carry their bytes up to a sum.
    """
    (tmp_path / "tree" / "below").mkdir(parents=True)
    (tmp_path / "tree" / "below" / "large").write_bytes(b"x" * 1000)
    for name in "abc":
        (tmp_path / "tree" / name).write_bytes(name.encode() * 100)
    sources = await gather(reader(tmp_path / "home"), job(tmp_path, "tree, tree/"))
    by_name = {source.file.name: source.file for source in sources}

    below = {"a", "b", "c", "below/large"}
    assert below | {f"tree/{name}" for name in below} == set(by_name)
    assert by_name["below/large"].data is None
    assert 2 == sum(file.data is not None for file in by_name.values())
    assert {100, 1000} == {file.size for file in by_name.values()}


async def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """What was read for another job serves only as long as the file is the same."""
    inputs, path = reader(tmp_path / "home"), tmp_path / "f"
    path.write_text("one")
    first = (await inputs.gather(job(tmp_path, "f")))[0].file.data
    path.write_text("three")
    second = (await gather(inputs, job(tmp_path, "f")))[0].file.data

    assert (b"one", b"three") == (first, second)


async def test_bytes_are_bounded(tmp_path: Path) -> None:
    """More than may be is code 32, found before anything is read."""
    (tmp_path / "d").mkdir()
    for name in "abc":
        with (tmp_path / "d" / name).open("wb") as file:
            file.truncate(1 << 40)
    with pytest.raises(InputError, match="more than 10 MiB") as caught:
        await gather(reader(tmp_path / "home"), job(tmp_path, "d"))

    assert 32 == caught.value.code


async def test_files_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories count too: a tree without files has an end as well."""
    monkeypatch.setattr(module, "MAX_FILES", 20)
    for number in range(30):
        (tmp_path / "d" / str(number)).mkdir(parents=True)
    with pytest.raises(InputError, match="more than 20 input files"):
        await gather(reader(tmp_path / "home"), job(tmp_path, "d"))


async def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A message could not say it."""
    (tmp_path / "d").mkdir()
    Path(os.fsdecode(os.fsencode(tmp_path / "d") + b"/\xff")).touch()
    with pytest.raises(InputError, match="is no name of a file"):
        await gather(reader(tmp_path / "home"), job(tmp_path, "d"))


async def test_what_has_no_size_before_it_is_read(tmp_path: Path) -> None:
    """Files of the kernel say that they are empty, and are not."""
    with pytest.raises(InputError, match="belongs to the system"):
        await gather(reader(tmp_path / "home"), job(tmp_path, "/proc/self/status"))


async def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that may not be listed is not passed over, and its path is named."""

    def closed(path: str) -> object:
        if Path(path).readlink().name == "closed":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    (tmp_path / "d" / "closed").mkdir(parents=True)
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(InputError, match=r"d/closed failed: Permission denied") as caught:
        await gather(reader(tmp_path / "home"), job(tmp_path, "d"))

    assert 13 == caught.value.errno


async def test_a_worker_reads_pieces_of_what_was_offered(side: Side) -> None:
    """With the claim's secret; not beyond, not before, and not what has become something else."""
    data = os.urandom(10_000)
    (side.work / "f").write_bytes(data)
    order = side.assignment(TransferInput="f")

    async def fetch(offset: int, length: int = 100, *, attempt: int = 1) -> bytes:
        request = FetchInput(
            key=order.key, job=order.job, attempt=attempt, name="f", offset=offset, length=length
        )
        return (await side.startd.bus.call(FETCH_INPUT, "shadow", request)).data

    async with side.shadow():
        await side.schedd.hand_over(order)
        await until(lambda: side.startd.runs)
        assert data[50:150] == await fetch(50)
        assert b"" == await fetch(1 << 63)
        with pytest.raises(RefusedError, match="beginning"):
            await fetch(-1)
        with pytest.raises(RefusedError, match="no input file"):
            await fetch(0, attempt=2)
        (side.work / "f").unlink()
        os.mkfifo(side.work / "f")
        with pytest.raises(RefusedError, match="not a regular file"):
            await fetch(0)
        (side.home / "x").touch()
        (side.work / "f").unlink()
        (side.work / "f").symlink_to(side.home / "x")
        with pytest.raises(RefusedError, match="own directory"):
            await fetch(0)


@pytest.mark.parametrize("name", ["home/state", "link", "a\0b", "x" * 300])
def test_a_job_event_log_has_its_place(tmp_path: Path, name: str) -> None:
    """What is no path, or belongs to the pool, is refused like any file that cannot be written."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "log").touch()
    (tmp_path / "link").symlink_to(tmp_path / "home" / "log")
    appender = JobAppender(
        Owners(Accounts(), FileAccess(tmp_path / "home"), SpooledFiles(tmp_path / "s", most=1))
    )
    appender.append(tmp_path / "log", "text", owner="")
    with pytest.raises(UserLogError):
        appender.append(tmp_path / name, "text", owner="")
    with pytest.raises(UserLogError):
        appender.tail(tmp_path / name, owner="")

    assert "text" == appender.tail(tmp_path / "log", owner="")
    assert "" == (tmp_path / "home" / "log").read_text()
