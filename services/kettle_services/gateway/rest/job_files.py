"""
Where the files of a job are had: on the machine where it runs, as `kettle tail` reads them, and else from its access point.

Everything is asked in the name of the person who asks; who may not read a file is refused there.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

from kettle.client import Client
from kettle.client.errors import CommandRefusedError
from kettle.client.jobs.access import STDERR, STDOUT, AttemptAccess
from kettle.projections.stored_projection import instant
from kettle.transfer.submit_side_paths import results
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands.access import LONGEST_LOOK, PEEK, FilePlace, Peek
from kettle_wire.commands.outputs import (
    FIND_OUTPUTS,
    LIST_OUTPUTS,
    READ_OUTPUT,
    FindOutputs,
    LeftFile,
    ListOutputs,
    OutputsFound,
    ReadOutput,
)
from kettle_wire.jobs import JobId
from kettle_wire.rest.files import JobFile
from kettle_wire.spooling import PIECE

LARGEST_PIECE: Final = 4 * PIECE
"""Bytes of one answer of an access point."""
_LOOK_S: Final = 0.5
_RUNS: Final = (JobStatus.RUNNING, JobStatus.SUSPENDED)
_PEEKED: Final = 16
"""Files about which one question to a machine may be."""


class OpenFile(msgspec.Struct, frozen=True):
    """A file as it was at one moment, with its beginning."""

    size: int
    etag: str
    """Empty: it grows."""
    offset: int
    data: bytes
    """From the offset on."""


class JobSource(Protocol):
    """Where the files of one job are."""

    running: bool
    ad: Ad
    """What of the job's ad says where its files are, and its state."""

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        """A piece of a file; a negative offset is counted from its end. Raises CommandRefusedError."""
        ...

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        """Files behind a name, and whether there may be more, behind the last of these."""
        ...


class RunningFiles:
    """Of a job that runs."""

    running = True

    def __init__(self, visit: AttemptAccess, client: Client, ad: Ad) -> None:
        self.visit = visit
        self.client = client
        self.ad = ad

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        """See `JobSource.open`."""
        piece = await self.visit.peek(name, offset=offset, length=min(length, LONGEST_LOOK))
        return OpenFile(piece.size, "", piece.offset, piece.data)

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        """See `JobSource.list`: what of the files that the job names is there already."""
        names = [name for name in sorted({STDOUT, STDERR, *results(self.ad)}) if name > after]
        found: list[JobFile] = []
        while names and not found:  # most results come at the end of a job
            asked, names = names[:_PEEKED], names[_PEEKED:]
            places = [FilePlace(name=name, length=0) for name in asked]
            request = Peek(access=self.visit.access, files=places)
            try:
                pieces = (await self.client.requests.ask(PEEK, request, name=self.visit.startd)).files
            except CommandRefusedError as error:
                if error.code != RefusalCode.NOT_RUNNING:
                    raise
                return [], False  # it has not begun to write, or the end of its run is about to be recorded
            found = [JobFile(path=piece.name, size=piece.size) for piece in pieces if not piece.trouble]
        return found, bool(names)


class LeftFiles:
    """Of a job that does not run."""

    running = False

    def __init__(self, client: Client, job: JobId, found: OutputsFound) -> None:
        self._client = client
        self._job = job
        self._shadow = found.shadow
        self.ad = found.ad

    async def open(self, name: str, offset: int, length: int) -> OpenFile:
        """See `JobSource.open`."""
        if offset < 0:
            about = await self.open(name, 0, 0)
            offset = max(0, about.size + offset)
        request = ReadOutput(job=self._job, name=name, offset=offset, length=min(length, LARGEST_PIECE))
        piece = await self._client.requests.ask(READ_OUTPUT, request, name=self._shadow)
        return OpenFile(piece.file.size, _etag(piece.file), offset, piece.data)

    async def list(self, after: str) -> tuple[list[JobFile], bool]:
        """See `JobSource.list`."""
        request = ListOutputs(job=self._job, after=after)
        listed = await self._client.requests.ask(LIST_OUTPUTS, request, name=self._shadow)
        files = [
            JobFile(path=file.name, size=file.size, changed=instant(file.changed)) for file in listed.files
        ]
        return files, listed.more


async def source_of(client: Client, job: JobId) -> JobSource:
    """
    Where the files of a job are now.

    Raises CommandRefusedError: there is no such job, or it is somebody else's.
    """
    await client.requests.transport.connection()
    found = await client.requests.ask(FIND_OUTPUTS, FindOutputs(job=job))
    if found.present and found.ad.get("JobStatus") in _RUNS:
        try:
            return RunningFiles(await client.visit(job), client, found.ad)
        except CommandRefusedError as error:
            if error.code not in {RefusalCode.NOT_RUNNING, RefusalCode.NOT_FOUND}:
                raise
    return LeftFiles(client, job, found)


async def pieces(source: JobSource, name: str, opened: OpenFile, end: int) -> AsyncIterator[bytes]:
    """
    The bytes of a file from what has been read of it up to a place.

    Raises CommandRefusedError: it is not what it was any more.
    """
    data, at = opened.data[: end - opened.offset], opened.offset
    while at < end:
        if not data:
            raise CommandRefusedError(
                RefusalCode.CHANGED, f"the file {name} became shorter while it was read"
            )
        yield data
        at += len(data)
        if at < end:
            place = await source.open(name, at, min(end - at, LARGEST_PIECE))
            if place.etag != opened.etag:
                raise CommandRefusedError(RefusalCode.CHANGED, f"the file {name} changed while it was read")
            data = place.data


async def grown(source: RunningFiles, job: JobId, name: str, offset: int) -> AsyncIterator[bytes]:
    """A file from a place on, as it grows, until the run is over, and then what the run has written last."""
    async for piece in source.visit.follow(name, offset=offset):
        yield piece.data
        offset = piece.offset + len(piece.data)
    # The machine has ended the run; what it wrote since the last look is there when its end is recorded.
    left = await source_of(source.client, job)
    while isinstance(left, RunningFiles):
        if left.visit.access.attempt != source.visit.access.attempt:
            return
        await asyncio.sleep(_LOOK_S)
        left = await source_of(source.client, job)
    if left.ad.get("JobStatus") == JobStatus.IDLE:
        return
    try:
        opened = await left.open(name, offset, LARGEST_PIECE)
    except CommandRefusedError as error:
        if error.code == RefusalCode.NOT_FOUND:
            return
        raise
    async for data in pieces(left, name, opened, opened.size):
        yield data


def _etag(file: LeftFile) -> str:
    return f'"{file.size:x}-{file.changed:x}"'
