"""Input files on their way to a machine."""

import asyncio
import hashlib
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from kettle.bus.ports import Bus
from kettle.execution.input_files import download
from kettle.execution.input_files.download import Fetcher
from kettle.testing.patience import PATIENCE_S
from kettle_wire.commands.startd import Activation, ClaimKey, InputFile, Piece
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

DATA = b"an input"
FILE = InputFile(name="in", mode=0o644, size=len(DATA), sha256=hashlib.sha256(DATA).hexdigest())
ACTIVATION = Activation(
    key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, ad={}, inputs=[FILE], shadow="shadow"
)


class Shadow:
    """It has the file."""

    async def call(self, *_asked: object, **_how: object) -> Piece:
        return Piece(DATA)


class SlowSum:
    """A hash that takes as long as a test wants."""

    begun, go = threading.Event(), threading.Event()

    def update(self, data: bytes) -> None:
        self.begun.set()
        assert self.go.wait(PATIENCE_S)

    def hexdigest(self) -> str:
        return FILE.sha256


async def test_nothing_is_written_after_a_download_was_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The descriptor is closed then, and its number may be that of another file."""
    monkeypatch.setattr(download, "hashlib", cast("Any", type("", (), {"sha256": SlowSum})))
    fetcher = Fetcher(cast("Bus", Shadow()), Subjects("p"), patience=1.0)
    path = tmp_path / "draft"
    with path.open("wb") as sink:
        fetching = asyncio.create_task(fetcher.fetch(ACTIVATION, FILE, sink.fileno()))
        assert await asyncio.to_thread(SlowSum.begun.wait, PATIENCE_S)
        fetching.cancel()
        await asyncio.wait([fetching], timeout=0.05)
        assert not fetching.done()
        SlowSum.go.set()
        with pytest.raises(asyncio.CancelledError):
            await fetching
    assert DATA == path.read_bytes()
