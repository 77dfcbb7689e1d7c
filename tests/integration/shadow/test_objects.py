"""
Input files on their way through the object store: what a shadow puts there, and what a startd makes of it.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError, Served
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.download import Fetcher
from kettle.testing.patience import PATIENCE_S
from kettle.transfer import sealed_pieces
from kettle_services.shadow.file_transfer import object_store as module
from kettle_services.shadow.file_transfer.input_files import Source
from kettle_services.shadow.file_transfer.object_store import Objects
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.commands.shadow import FETCH_INPUT, OFFER_INPUT, FetchInput, Offered, OfferInput
from kettle_wire.commands.startd import Activation, ClaimKey, InputFile, Piece
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("test")
SIZE = 3_000_000
PIECES = -(-SIZE // module.PIECE)


class Way:
    """A shadow that serves one file, and its store; machines on the same bus."""

    def __init__(self, directory: Path, tasks: asyncio.TaskGroup, settings: ShadowSettings) -> None:
        self.now = 0.0
        self.server = MemoryServer(lambda: self.now)
        self.directory = directory
        self.path = directory / "large"
        self.data = os.urandom(SIZE)
        self.path.write_bytes(self.data)
        self.digest = hashlib.sha256(self.data).hexdigest()
        self.bus = MemoryBus(self.server, subjects=SUBJECTS, identity=daemon("shadow"))
        self.objects = Objects(self.bus, SUBJECTS, settings, tasks)
        self.places = FileAccess(directory / "home")
        self.read = 0
        """Bytes that were read from the shadow itself."""

    async def serve(self) -> None:
        served: list[Served[Any, Any]] = [
            Served(OFFER_INPUT, self._offer_input),
            Served(FETCH_INPUT, self._fetch_input),
        ]
        await self.bus.serve("shadow", "shadow", served, version="0")

    async def offer(self, machine: str) -> int | None:
        file = InputFile(name="large", mode=0o644, size=SIZE, sha256=self.digest)
        return await self.objects.offer(Source(file, self.path, self.places), machine)

    async def _offer_input(self, request: OfferInput, caller: Identity) -> Offered:
        piece = await self.offer(request.name)
        if piece is None:
            raise RefusedError("busy", "it is on its way")
        return Offered(piece=piece)

    async def _fetch_input(self, request: FetchInput, caller: Identity) -> Piece:
        data = self.data[request.offset : request.offset + request.length]
        self.read += len(data)
        return Piece(data)

    def stored(self) -> int:
        """How many pieces were ever put into the store."""
        stream = self.server.streams.get(SUBJECTS.object_stream)
        return stream.last if stream is not None else 0

    def machine(self, name: str, *, limit: int = 10 * SIZE) -> tuple[InputCache, Fetcher]:
        bus = MemoryBus(self.server, subjects=SUBJECTS, identity=daemon("startd"))
        fetcher = Fetcher(bus, SUBJECTS, patience=PATIENCE_S)
        cache = InputCache(self.directory / name, fetcher, limit_bytes=limit)
        cache.restore()
        return cache, fetcher

    async def job(self, cache: InputCache, machine: str) -> bytes:
        """What a job on a machine gets."""
        file = InputFile(name=machine, mode=0o644, size=SIZE, sha256=self.digest)
        activation = Activation(
            key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, ad={}, inputs=[file], shadow="shadow"
        )
        async with cache.gathered(activation) as (found,):
            return Path(found.path).read_bytes()


@asynccontextmanager
async def way(directory: Path, **settings: str | float) -> AsyncGenerator[Way]:
    async with asyncio.TaskGroup() as tasks:
        one = Way(directory, tasks, msgspec.convert({"pool": "test", **settings}, ShadowSettings))
        await one.serve()
        yield one
        one.objects.close()


async def test_one_machine_is_served_by_the_shadow_and_the_others_by_the_store(tmp_path: Path) -> None:
    """However many of them ask at once, the file is put there once."""
    async with way(tmp_path) as one:
        machines = [(f"m{number}", *one.machine(f"m{number}")) for number in range(5)]
        first, *others = machines
        assert one.data == await one.job(first[1], first[0])
        assert (SIZE, 0) == (one.read, one.stored())
        found = await asyncio.gather(*(one.job(cache, name) for name, cache, _ in others for _ in range(3)))

        assert [one.data] * 12 == found
        assert (SIZE, PIECES) == (one.read, one.stored())
        assert [SIZE] * 5 == [fetcher.bytes for _, _, fetcher in machines]
        assert [0, *[SIZE] * 4] == [fetcher.stored_bytes for _, _, fetcher in machines]
        assert {"InputFilesFetched": 1, "InputCacheHits": 2}.items() <= others[0][1].ad().items()


@pytest.mark.parametrize(("chosen", "pieces"), [("always", PIECES), ("never", 0)])
async def test_the_store_can_be_used_for_all_and_for_none(tmp_path: Path, chosen: str, pieces: int) -> None:
    """By a setting; small files never go there."""
    async with way(tmp_path, object_store=chosen) as one:
        cache, _ = one.machine("m")
        assert one.data == await one.job(cache, "m")
        assert pieces == one.stored()
    async with way(tmp_path, object_store="always", object_bytes=SIZE + 1) as one:
        assert 0 == await one.offer("m")


async def test_pieces_that_are_gone_are_read_from_the_shadow(tmp_path: Path) -> None:
    """The store may lose what it has at any time."""
    async with way(tmp_path, object_store="always") as one:
        await one.offer("m")
        stream = one.server.streams[SUBJECTS.object_stream]
        gone = SUBJECTS.object_piece(sealed_pieces.name(one.digest), 2)
        stream.messages = [message for message in stream.messages if message.subject != gone]
        cache, fetcher = one.machine("m")

        assert one.data == await one.job(cache, "m")
        assert (module.PIECE, SIZE - module.PIECE) == (one.read, fetcher.stored_bytes)


async def test_wrong_bytes_in_the_store_are_not_used(tmp_path: Path) -> None:
    """No matter who put them there, they are none of the file, and the shadow is asked for them."""
    async with way(tmp_path, object_store="always") as one:
        await one.offer("m")
        await one.bus.append(SUBJECTS.object_piece(sealed_pieces.name(one.digest), 0), b"x" * module.PIECE)
        cache, _ = one.machine("m")
        assert one.data == await one.job(cache, "m")
        assert module.PIECE == one.read


async def test_what_is_stored_tells_nobody_what_it_is(tmp_path: Path) -> None:
    """
    Neither a subject nor a message has anything of the file, or its SHA-256, by which it could be asked for.
    """
    async with way(tmp_path, object_store="always") as one:
        one.data = b"a line of a secret\n" * (SIZE // 19 + 1)
        one.path.write_bytes(one.data[:SIZE])
        one.digest = hashlib.sha256(one.data[:SIZE]).hexdigest()
        await one.offer("m")
        stored = one.server.streams[SUBJECTS.object_stream].messages
        assert PIECES == len({message.data for message in stored})
        assert not [each for each in stored if one.digest in each.subject or b"secret" in each.data]


async def test_a_full_store_is_left_alone(tmp_path: Path) -> None:
    """Machines read from the shadow then; it is not tried for each of them."""
    async with way(tmp_path, object_store="always", object_store_mib=1) as one:
        assert [0, 0] == [await one.offer(name) for name in ("m", "n")]
        tried = one.stored()
        assert 0 == await one.offer("o")
        assert 0 < tried == one.stored() < PIECES


async def test_a_file_that_changed_is_not_complete(tmp_path: Path) -> None:
    """Its last piece never comes, and nobody is told that it is there."""
    async with way(tmp_path, object_store="always") as one:
        one.path.write_bytes(one.data[::-1])
        assert 0 == await one.offer("m")
        last = SUBJECTS.object_piece(sealed_pieces.name(one.digest), PIECES - 1)
        assert None is await one.bus.newest(SUBJECTS.object_stream, last)


async def test_the_least_recently_used_leaves_a_cache(tmp_path: Path) -> None:
    """What a job is about to use stays, whatever the limit."""
    async with way(tmp_path) as one:
        cache, _ = one.machine("m", limit=SIZE - 1)
        assert one.data == await one.job(cache, "m")
        assert {"InputCacheFiles": 0, "InputCacheBytes": 0}.items() <= cache.ad().items()
