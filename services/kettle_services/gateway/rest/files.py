"""
What is asked about the files of jobs.

What jobs write is nobody's to trust: it is sent as what it is said to be, to be kept and not to be shown, and never as a page.
"""

import asyncio
import base64
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final
from urllib.parse import quote

import msgspec
from aiohttp import web

from kettle.bus.ports import BusError
from kettle.client import Client, ClientError
from kettle.client.jobs.access import STDERR, STDOUT
from kettle.transfer.file_lists import is_inside
from kettle.transfer.submit_side_paths import text
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.job_archives import BLOCK, LeftArchive, header_of
from kettle_services.gateway.rest.job_files import (
    LARGEST_PIECE,
    JobSource,
    OpenFile,
    RunningFiles,
    grown,
    pieces,
    source_of,
)
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.jobs import JobId
from kettle_wire.rest.files import GetArchive, GetFile, GetStdout, GetTail, JobFile, JobFiles, ListFiles, Tail
from kettle_wire.rest.problem import ProblemCode

_BINARY: Final = "application/octet-stream"
_TEXT: Final = "text/plain; charset=utf-8"
_TAR: Final = "application/x-tar"
_ARCHIVED: Final = 10_000
"""Files in one archive."""
_AT_ONCE: Final = 64 << 10
_PATIENCE_S: Final = 30.0
"""A reader that does not take so many bytes in so many seconds is cut off."""

_log: Final = logging.getLogger(__name__)


class _Part(msgspec.Struct, frozen=True):
    """What of a file is sent."""

    first: int
    end: int
    whole: bool


class FileQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections, past: PastQuestions, streams: Streams) -> None:
        """`streams`: how many answers may go on while a job runs."""
        self._people = people
        self._past = past
        self._streams = streams

    async def list(self, asked: Asked) -> Answer:
        """The files of a job."""
        parameters: ListFiles = asked.parameters
        job, schedd = await self._past.named(parameters.id)
        async with self._people.of(asked.person) as client:
            source = await source_of(client.at(schedd), job)
            files, more = await source.list(parameters.after)
        following = files[-1].path if more and files else None
        return Answer(JobFiles(id=f"{job}@{schedd}", running=source.running, files=files, next=following))

    async def get(self, asked: Asked) -> web.StreamResponse:
        """One of them."""
        parameters: GetFile = asked.parameters
        if not is_inside(parameters.path):
            raise refused_field("/path/path", "the path has to lead to a file inside of the job's sandbox")

        async def send(_job: JobId, source: JobSource) -> web.StreamResponse:
            return await _file(asked, source, parameters.path, _BINARY, parameters.path.rpartition("/")[2])

        return await self._sent(asked, parameters.id, send)

    def stream(self, name: str) -> Callable[[Asked], Awaitable[web.StreamResponse]]:
        """Answers with what a job has written to a standard stream."""
        called = {STDOUT: "stdout", STDERR: "stderr"}[name]

        async def answer(asked: Asked) -> web.StreamResponse:
            parameters: GetStdout = asked.parameters

            async def send(job: JobId, source: JobSource) -> web.StreamResponse:
                shown = f"{job}.{called}.txt"
                if parameters.follow and isinstance(source, RunningFiles):
                    return await self._followed(asked, job, source, name, shown)
                if parameters.follow:
                    _require_ended(job, source.ad)
                return await _file(asked, source, name, _TEXT, shown, offset=parameters.offset)

            return await self._sent(asked, parameters.id, send)

        return answer

    async def tail(self, asked: Asked) -> Answer:
        """What a job has written last to a standard stream."""
        parameters: GetTail = asked.parameters
        name = STDERR if parameters.stream == "stderr" else STDOUT
        job, schedd = await self._past.named(parameters.id)
        async with self._people.of(asked.person) as client:
            source = await source_of(client.at(schedd), job)
            opened = await source.open(name, -parameters.bytes, parameters.bytes)
        return Answer(
            Tail(
                id=f"{job}@{schedd}",
                running=source.running,
                text=opened.data.decode(errors="replace"),
                offset=opened.offset,
                end=opened.offset + len(opened.data),
                size=opened.size,
            )
        )

    async def archive(self, asked: Asked) -> web.StreamResponse:
        """All of them in one archive."""
        parameters: GetArchive = asked.parameters

        async def send(job: JobId, source: JobSource) -> web.StreamResponse:
            return await _archive(asked, job, source)

        return await self._sent(asked, parameters.id, send)

    async def _sent(
        self,
        asked: Asked,
        name: str,
        send: Callable[[JobId, JobSource], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """What is sent of a job's files, over a connection of the person's, which is held as long."""
        job, schedd = await self._past.named(name)
        async with self._people.of(asked.person) as client:
            return await send(job, await source_of(client.at(schedd), job))

    async def _followed(
        self, asked: Asked, job: JobId, source: RunningFiles, name: str, shown: str
    ) -> web.StreamResponse:
        parameters: GetStdout = asked.parameters
        first = await source.open(name, parameters.offset, 0)
        with self._streams.one_more(asked.person.name):
            response = _response(_TEXT, shown)
            response.headers["X-Accel-Buffering"] = "no"
            await response.prepare(asked.request)

            return await _all_written(asked, response, grown(source, job, name, first.offset))


async def archive_of(asked: Asked, client: Client, job: JobId) -> web.StreamResponse:
    """All files of a job at the access point of a client, in one archive; raises CommandRefusedError."""
    return await _archive(asked, job, await source_of(client, job))


async def _archive(asked: Asked, job: JobId, source: JobSource) -> web.StreamResponse:
    """
    Of a job that has ended it can be had in parts: its files are what they were. Of one that runs it is as they are when they are
    reached.
    """
    files, name = await _all(source), f"{job}.tar"
    if not source.running:
        return await _file(asked, LeftArchive(source, files), name, _TAR, name)
    response = _response(_TAR, name)
    await response.prepare(asked.request)
    return await _all_written(asked, response, _tar(source, files))


def _require_ended(job: JobId, ad: Ad) -> None:
    """Raises RequestRefused: the job will run, so that somebody who follows it has to come again."""
    match ad.get("JobStatus"):
        case JobStatus.IDLE:
            raise RequestRefused(
                409, RefusalCode.NOT_RUNNING, f"job {job} is idle: it can be followed while it runs"
            )
        case JobStatus.HELD:
            reason = text(ad, "HoldReason", "nobody said why")
            raise RequestRefused(
                423, ProblemCode.HELD, f"job {job} is on hold ({reason}): it can be followed while it runs"
            )
        case _:
            pass


async def _file(
    asked: Asked, source: JobSource, name: str, media: str, shown: str, *, offset: int = 0
) -> web.StreamResponse:
    opened = await source.open(name, offset, LARGEST_PIECE)
    part = _wanted(asked.request, opened)
    response = _response(media, shown, status=200 if part.whole else 206)
    response.headers["Accept-Ranges"] = "bytes"
    if opened.etag:
        response.headers["ETag"] = opened.etag
    if not part.whole:
        response.headers["Content-Range"] = f"bytes {part.first}-{part.end - 1}/{opened.size}"
    if digest := await _digest(asked.request, source, name, opened):
        response.headers["Repr-Digest"] = f"sha-256=:{digest}:"
    response.content_length = part.end - part.first
    if part.first != opened.offset:
        opened = await source.open(name, part.first, min(part.end - part.first, LARGEST_PIECE))
    await response.prepare(asked.request)
    return await _all_written(asked, response, pieces(source, name, opened, part.end))


def _wanted(request: web.Request, opened: OpenFile) -> _Part:
    """Raises RequestRefused: the file has no such part."""
    whole = _Part(opened.offset, max(opened.size, opened.offset), whole=True)
    condition = request.headers.get("If-Range", "")
    if "Range" not in request.headers or (condition and condition != opened.etag):
        return whole
    try:
        asked = request.http_range
    except ValueError:
        return whole  # several parts, or no bytes: all of it is an answer to that
    first, end, _ = asked.indices(opened.size)
    if first >= end:
        raise RequestRefused(
            416,
            ProblemCode.RANGE,
            f"the file has {opened.size} bytes, and none of those are wanted: leave out the header Range",
            headers={"Content-Range": f"bytes */{opened.size}"},
        )
    return _Part(first, end, whole=False)


async def _digest(request: web.Request, source: JobSource, name: str, opened: OpenFile) -> str:
    """Of the whole file, if that is small or somebody wants it; never of one that grows."""
    small = opened.offset == 0 and len(opened.data) == opened.size
    if not opened.etag or not (small or "sha-256" in request.headers.get("Want-Repr-Digest", "")):
        return ""
    seen = hashlib.sha256()
    first = opened if opened.offset == 0 else await source.open(name, 0, LARGEST_PIECE)
    async for data in pieces(source, name, first, opened.size):
        seen.update(data)
    return base64.b64encode(seen.digest()).decode()


async def _all(source: JobSource) -> list[JobFile]:
    """Raises RequestRefused: they are too many for an archive."""
    found: list[JobFile] = []
    more = True
    while more:
        files, more = await source.list(found[-1].path if found else "")
        found += files
        if len(found) > _ARCHIVED:
            raise RequestRefused(
                422,
                RefusalCode.TOO_LARGE,
                f"the job has more than {_ARCHIVED} files, which are too many for one archive: get them one by one",
            )
    return found


async def _tar(source: JobSource, files: list[JobFile]) -> AsyncIterator[bytes]:
    """An archive; a file that grows meanwhile is as long as it was when it was reached."""
    for file in files:
        opened = await source.open(file.path, 0, LARGEST_PIECE)
        yield header_of(file, opened.size)
        async for data in pieces(source, file.path, opened, opened.size):
            yield data
        yield bytes(-opened.size % BLOCK)
    yield bytes(2 * BLOCK)


async def _all_written(
    asked: Asked, response: web.StreamResponse, data: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Send what comes.  An answer that cannot be completed is broken off, so that nobody takes it for all."""
    try:
        async for each in data:
            if asked.admission is not None:
                await asked.admission.require_still()
            await _written(response, each)
        await response.write_eof()
    except (ClientError, BusError, RequestRefused, ConnectionResetError, TimeoutError) as error:
        _break_off(asked, error)
    return response


async def _written(response: web.StreamResponse, data: bytes) -> None:
    """In small parts: a slow line is none that nobody reads from. Raises TimeoutError."""
    for at in range(0, len(data), _AT_ONCE):
        async with asyncio.timeout(_PATIENCE_S):
            await response.write(data[at : at + _AT_ONCE])


def _response(media: str, name: str, *, status: int = 200) -> web.StreamResponse:
    shown = "".join(each if each.isascii() and (each.isalnum() or each in "._-") else "_" for each in name)
    headers = {
        "Cache-Control": "private, no-cache",
        "Content-Disposition": f"attachment; filename=\"{shown}\"; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Type": media,
        "Vary": "Authorization",
    }
    return web.StreamResponse(status=status, headers=headers)


def _break_off(asked: Asked, error: Exception) -> None:
    """Whatever was promised is not sent."""
    _log.info(
        "an answer ends before its end: %s",
        str(error) or "it is not read",
        extra={"path": asked.request.path},
    )
    if asked.request.transport is not None:
        asked.request.transport.abort()
