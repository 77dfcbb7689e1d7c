"""What a running job prints, in the file where its owner wants it."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle_services.shadow.file_transfer.output_streaming import Streaming
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.files.disk_threads import FileWork
from kettle_wire.commands.chirp import Trouble
from kettle_wire.commands.questions import StreamPiece


@pytest.fixture
def work() -> Iterator[FileWork]:
    work = FileWork(10)
    yield work
    work.close()


@pytest.fixture
def streaming(tmp_path: Path, work: FileWork) -> Streaming:
    async def access() -> FileAccess:
        return FileAccess(tmp_path / "pool")

    return Streaming({"Iwd": str(tmp_path), "Out": "out", "StreamOut": True}, access, work)


async def test_pieces_are_written_where_they_belong(streaming: Streaming, tmp_path: Path) -> None:
    """The first one starts the file again, and one that comes twice does no harm."""
    (tmp_path / "out").write_text("of an earlier run")
    for piece in (
        StreamPiece("Out", 0, b"one"),
        StreamPiece("Out", 3, b" two"),
        StreamPiece("Out", 3, b" two"),
    ):
        assert len(piece.data) == (await streaming.take(piece)).result
    assert "one two" == (tmp_path / "out").read_text()
    assert Trouble.NOT_AUTHORIZED == (await streaming.take(StreamPiece("Err", 0, b"x"))).result


async def test_a_first_piece_that_comes_late_leaves_the_results(
    streaming: Streaming, work: FileWork, tmp_path: Path
) -> None:
    """
    A brief job's results may be there before its first piece, which is empty: the file is not emptied, neither by one that came after
    the end nor by one that waited for a disk.
    """
    busy = threading.Event()
    threads = [asyncio.create_task(work.do(busy.wait)) for _ in range(4)]
    await asyncio.sleep(0)
    waiting = asyncio.create_task(streaming.take(StreamPiece("Out", 0, b"")))
    await asyncio.sleep(0)
    ending = asyncio.create_task(streaming.end())
    await asyncio.sleep(0)
    assert not ending.done()
    busy.set()
    await asyncio.gather(ending, waiting, *threads)
    (tmp_path / "out").write_text("all of it")
    assert Trouble.NOT_AUTHORIZED == (await streaming.take(StreamPiece("Out", 0, b""))).result
    assert "all of it" == (tmp_path / "out").read_text()
