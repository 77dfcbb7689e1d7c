"""
The files of jobs that come in by a compute entrypoint: one archive with the inputs, one with what a job has left.

An archive of inputs is kept on the disk while it is read, because a file is passed on by its digest. What others put into an archive is
nobody's to trust: plain files inside of the sandbox are taken, and everything else is refused.
"""

import asyncio
import hashlib
import tarfile
import tempfile
from collections.abc import AsyncIterator
from typing import IO, Final

import msgspec
from aiohttp import web

from kettle.client import Client
from kettle.routes.chain import chain_of
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.ce.questions import found_job
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.files import archive_of
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.spooling import LARGEST_PART, body_pieces, give_held
from kettle_wire.jobs import JobId
from kettle_wire.rest.entrypoint_jobs import LARGEST_SANDBOX, GetOutput, PutSandbox, SandboxGiven
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.spooling import InputFile

_TAR: Final = "application/x-tar"
_MOST: Final = 10_000
"""Files in an archive."""
_SCHEDD: Final = "/query/schedd"
_IN_MEMORY: Final = 1 << 20
"""Bytes of an archive above which it is put on the disk."""
_EXECUTABLE: Final = 0o111


class SandboxCommands:
    """Carries them out."""

    def __init__(self, people: PersonConnections, access_points: AccessPoints) -> None:
        self._people: Final = people
        self._access_points: Final = access_points

    async def put(self, asked: Asked) -> Answer:
        """Have jobs begin with the files of an archive."""
        parameters: PutSandbox = asked.parameters
        if asked.request.content_type != _TAR:
            raise RequestRefused(
                415, ProblemCode.BODY_TYPE, f"the body has to be {_TAR}; say so in the header Content-Type"
            )
        if (asked.request.content_length or 0) > LARGEST_SANDBOX:
            raise _too_large()
        async with self._people.of(asked.person) as client:
            there, job = await self._named(client, parameters.job, parameters.schedd)
            with tempfile.SpooledTemporaryFile(_IN_MEMORY) as kept:
                size = 0
                async for piece in body_pieces(asked):
                    size += len(piece)
                    if size > LARGEST_SANDBOX:
                        raise _too_large()
                    await asyncio.to_thread(kept.write, piece)
                files = await asyncio.to_thread(files_in, kept)
                await give_held(there, job.cluster, files)
        reply = SandboxGiven(id=str(job), files=len(files), bytes=sum(each.about.size for each in files))
        return Answer(reply)

    async def output(self, asked: Asked) -> web.StreamResponse:
        """All that a job has left."""
        parameters: GetOutput = asked.parameters
        async with self._people.of(asked.person) as client:
            there, job = await self._named(client, parameters.job, parameters.schedd)
            return await archive_of(asked, there, job)

    async def _named(self, client: Client, name: str, schedd: str) -> tuple[Client, JobId]:
        there = await self._access_points.at(client, schedd, _SCHEDD)
        return there, JobId.parse(chain_of(await found_job(there, name)).id)


class ArchivedFile(msgspec.Struct, frozen=True):
    """A file in an archive that is kept."""

    about: InputFile
    kept: IO[bytes]
    begins: int

    async def read(self) -> AsyncIterator[bytes]:
        """See `HeldFile.read`."""
        at, end = self.begins, self.begins + self.about.size
        while at < end:
            data = await asyncio.to_thread(_read, self.kept, at, min(LARGEST_PART, end - at))
            yield data
            at += len(data)


def _read(kept: IO[bytes], at: int, length: int) -> bytes:
    kept.seek(at)
    return kept.read(length)


def files_in(kept: IO[bytes]) -> list[ArchivedFile]:
    """The files of an archive, the last of each name; raises RequestRefused."""
    kept.seek(0)
    found: dict[str, ArchivedFile] = {}
    try:
        with tarfile.open(fileobj=kept, mode="r:") as archive:
            for number, entry in enumerate(archive):
                if number == _MOST:
                    raise RequestRefused(
                        413, ProblemCode.BODY_TOO_LARGE, f"an archive has {_MOST:,} files at most"
                    )
                if entry.isdir():
                    continue
                path = entry.name.removeprefix("./")
                if not entry.isreg() or entry.issparse():
                    raise refused_field(
                        f"/body/{path}",
                        f"{path} is no plain file: send what it leads to",
                        code=ProblemCode.BODY_INVALID,
                        status=422,
                    )
                found[path] = _archived(kept, path, entry)
    except tarfile.TarError as error:
        raise refused_field(
            "/body", f"the body is no archive: {error}", code=ProblemCode.BODY_INVALID, status=422
        ) from error
    return list(found.values())


def _archived(kept: IO[bytes], path: str, entry: tarfile.TarInfo) -> ArchivedFile:
    """A file with its digest; raises ReadError: the archive ends in it."""
    seen, left, next_header = hashlib.sha256(), entry.size, kept.tell()
    kept.seek(entry.offset_data)
    while left:
        data = kept.read(min(LARGEST_PART, left))
        if not data:
            raise tarfile.ReadError(f"it ends inside of {path}")
        seen.update(data)
        left -= len(data)
    kept.seek(next_header)
    about = InputFile(
        path=path,
        sha256=seen.hexdigest(),
        size=entry.size,
        executable=bool(entry.mode & _EXECUTABLE),
    )
    return ArchivedFile(about, kept, entry.offset_data)


def _too_large() -> RequestRefused:
    return RequestRefused(
        413,
        ProblemCode.BODY_TOO_LARGE,
        f"an archive has {LARGEST_SANDBOX >> 20} MiB at most: send larger files with PUT /v2/jobs/ID/files/PATH",
    )
