"""
Files of jobs whose access point does not see this machine's disk: read here and sent before the jobs run, fetched and
written here after their end, with the rights of the caller.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kettle.bus.ports import Rep, Req
from kettle.client.errors import CommandRefusedError
from kettle.client.jobs.queue import JobQueue
from kettle.client.jobs.status import id_of
from kettle.client.spooling.input_files import (
    InputFiles,
    LocalFile,
    SpoolingError,
    changed_file_error,
    path_error,
    read_unchanged,
)
from kettle.client.spooling.output_files import (
    has_ends,
    new_log_events,
    one_of_each_log,
    output_path,
    replacing,
    with_submitter_paths,
)
from kettle.retry.deadline import Deadline
from kettle.threads.to_the_end import to_the_end
from kettle.transfer.spooled_jobs import PLACES, PREFIX
from kettle.transfer.submit_side_paths import text
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands import schedd, spooling
from kettle_wire.commands.schedd import FindSpool, Select
from kettle_wire.commands.spooling import (
    FetchSpooled,
    ListSpooled,
    Part,
    SpooledResult,
    SpoolJobs,
    SpoolParts,
)
from kettle_wire.endpoint import Endpoint
from kettle_wire.jobs import JobId
from kettle_wire.spooling import PIECE

_AT_ONCE: Final = 4
"""Messages that are on their way at once."""
_LARGE: Final = 4 * PIECE
"""Bytes of a large file in one message."""
_LOG_S: Final = 30.0
"""So long the ends of jobs are waited for in their log: one that cannot be written will not have them."""
_LOOK_S: Final = 0.1
_TRIES: Final = 5
"""How often nothing may have got any further before we give up."""
_OVER: Final = (JobStatus.REMOVED, JobStatus.COMPLETED)
_LOOKED_AT: Final = ("ClusterId", "ProcId", "JobStatus", "StageInFinish", "UserLogUseXML")
_NOT_KEPT: Final = "the access point does not keep the files that it is sent; ask its administrator"

_Read = Callable[[int], Awaitable[bytes]]
"""A piece of a file, from an offset on."""


class FetchResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for the selected jobs."""

    jobs: list[JobId]
    """Whose results are here."""
    skipped: list[JobId]
    """Whose files were not sent to the access point, or not all of them: there is nothing to be fetched."""


class SpoolTransfers:
    """The files of a person's jobs at an access point."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    async def send(self, jobs: Iterable[Ad]) -> None:
        """
        Send the input files of jobs, each known by its ad as it was submitted or is in the queue, and have them released.

        When it returns all is on the access point's disk, and what was read here is not needed any more.  A repeat
        goes on where it was interrupted.

        Raises:
            SpoolingError: a file cannot be read, or changed meanwhile.  The jobs that wait for it stay held.
        """
        await self._queue.requests.transport.connection()
        for cluster, ads in _by_cluster(jobs).items():
            shadow = await self._shadow(cluster)
            cargo = await asyncio.to_thread(InputFiles, ads)
            await self._deliver(shadow, cluster, cargo)

    async def fetch(self, select: Select, *, keep: bool = False) -> FetchResult:
        """
        Bring the results of jobs to where their submitter wanted them; those of jobs that have ended need not be kept then, unless
        they are to be (`keep`).

        Raises:
            SpoolingError: a result cannot be written here.
        """
        projection = [*_LOOKED_AT, *PLACES, *(f"{PREFIX}{name}" for name in PLACES)]
        await self._queue.requests.transport.connection()
        found = await self._queue.jobs(select, projection=projection)
        ready = [ad for ad in found if "StageInFinish" in ad]
        began = int(time.time())
        for cluster, ads in _by_cluster(ready).items():
            shadow = await self._shadow(cluster)
            await _all([self._bring(shadow, ad) for ad in ads])
            await _all([self._bring_log(shadow, ad, ends) for ad, ends in one_of_each_log(ads)])
        over = [id_of(ad) for ad in ready if ad.get("JobStatus") in _OVER]
        if over and not keep:  # what one that runs has left so far is not all of it
            said: Ad = {"StageOutStart": began, "StageOutFinish": int(time.time())}
            await self._queue.edit_jobs(Select(jobs=over), said)
        skipped = [id_of(ad) for ad in found if "StageInFinish" not in ad]
        return FetchResult(jobs=[id_of(ad) for ad in ready], skipped=skipped)

    # -- sending -----------------------------------------------------------------------------------------------------

    async def _deliver(self, shadow: str, cluster: int, cargo: InputFiles) -> None:
        request, before, tries = SpoolJobs(cluster=cluster, manifest=cargo.digest), list[str](), 0
        by_job = self._queue.requests.pool.by_job
        endpoint = spooling.SPOOL_JOBS_FROM_JOB if by_job else spooling.SPOOL_JOBS
        while missing := (await self._ask(endpoint, shadow, request)).missing:
            tries = tries + 1 if missing == before else 0
            if tries > _TRIES:
                raise SpoolingError(_NOT_KEPT)
            before = missing
            small, large = cargo.batches(missing)
            sends = [self._send_small(shadow, cluster, files) for files in small]
            sends += [self._send_large(shadow, cluster, file) for file in large]
            if cargo.digest in missing:
                sends.append(self._send_manifest(shadow, cluster, cargo))
            await _all(sends)

    async def _send_small(self, shadow: str, cluster: int, files: list[LocalFile]) -> None:
        parts = await asyncio.to_thread(read_unchanged, files)
        await self._ask(spooling.SPOOL_PARTS, shadow, SpoolParts(cluster=cluster, parts=parts))

    async def _send_large(self, shadow: str, cluster: int, file: LocalFile) -> None:
        with path_error(file.path):
            fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        try:

            async def read(offset: int) -> bytes:
                with path_error(file.path):
                    data = await to_the_end(os.pread, fd, min(_LARGE, file.size - offset), offset)
                if not data:
                    raise changed_file_error(file.path)
                return data

            await self._send_pieces(shadow, cluster, file.sha256, file.size, read)
        except CommandRefusedError as error:
            if error.code == RefusalCode.CHANGED:
                raise changed_file_error(file.path) from error
            raise
        finally:
            os.close(fd)

    async def _send_manifest(self, shadow: str, cluster: int, cargo: InputFiles) -> None:
        async def read(offset: int) -> bytes:
            return cargo.manifest[offset : offset + _LARGE]

        await self._send_pieces(shadow, cluster, cargo.digest, len(cargo.manifest), read)

    async def _send_pieces(self, shadow: str, cluster: int, digest: str, size: int, read: _Read) -> None:
        offset, tries = 0, 0
        while True:
            part = Part(digest, size, offset, await read(offset))
            request = SpoolParts(cluster=cluster, parts=[part])
            (have,) = (await self._ask(spooling.SPOOL_PARTS, shadow, request)).have
            if have == size:
                return
            tries = tries + 1 if have <= offset else 0
            if tries > _TRIES:
                raise SpoolingError(_NOT_KEPT)
            offset = have

    # -- fetching ----------------------------------------------------------------------------------------------------

    async def _bring(self, shadow: str, ad: Ad) -> None:
        job, there = id_of(ad), with_submitter_paths(ad)
        request = ListSpooled(job=job)
        while True:
            answer = await self._ask(spooling.LIST_SPOOLED, shadow, request)
            for result in answer.files:
                if (path := output_path(there, job, result.name)) is not None:
                    await self._write(shadow, job, result, path)
            if not answer.more:
                return
            request = ListSpooled(job=job, after=answer.files[-1].name)

    async def _write(self, shadow: str, job: JobId, result: SpooledResult, path: Path) -> None:
        with path_error(path), replacing(path, job, result.mode) as fd:
            done = 0
            while done < result.size:
                data = result.data or await self._piece(shadow, job, result.name, done)
                if not data:
                    raise SpoolingError(f"the result {result.name} of job {job} changed while it was fetched")
                await to_the_end(os.pwrite, fd, data, done)
                done += len(data)

    async def _bring_log(self, shadow: str, ad: Ad, ends: Collection[JobId]) -> None:
        """
        Put the events that a log here does not have yet at its end: it may be a log of other jobs, too.

        The log is written after the record, and jobs that have ended may be forgotten after this, with their log: the
        events of their ends are waited for.
        """
        from kettle.userlog import Appender, UserLogError

        job, there, data = id_of(ad), with_submitter_paths(ad), bytearray()
        path = Path(text(there, "Iwd", "/"), text(there, "UserLog"))
        name, patience = Path(text(ad, "UserLog")).name, Deadline(_LOG_S)
        while True:
            try:
                while piece := await self._piece(shadow, job, name, len(data), log=True):
                    data += piece
            except CommandRefusedError as error:
                if error.code != RefusalCode.NOT_FOUND:
                    raise
            if not patience.left() or has_ends(data.decode(errors="replace"), ends):
                break
            await asyncio.sleep(_LOOK_S)
        try:
            with path_error(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                known = path.read_text(errors="replace") if path.exists() else ""
                if more := new_log_events(known, data.decode(errors="replace")):
                    Appender().append(path, more)
        except UserLogError as error:
            raise SpoolingError(str(error)) from error

    async def _piece(self, shadow: str, job: JobId, name: str, offset: int, *, log: bool = False) -> bytes:
        request = FetchSpooled(job=job, name=name, offset=offset, length=_LARGE, log=log)
        return (await self._ask(spooling.FETCH_SPOOLED, shadow, request)).data

    async def _shadow(self, cluster: int) -> str:
        return (await self._queue.requests.ask(schedd.FIND_SPOOL, FindSpool(cluster=cluster))).shadow

    async def _ask(self, endpoint: Endpoint[Req, Rep], shadow: str, request: Req) -> Rep:
        return await self._queue.requests.ask(endpoint, request, name=shadow)


def _by_cluster(ads: Iterable[Ad]) -> dict[int, list[Ad]]:
    found: dict[int, list[Ad]] = {}
    for ad in ads:
        found.setdefault(id_of(ad).cluster, []).append(ad)
    return found


async def _all(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do it all, a few at once; the first that fails ends it."""
    todo = iter(work)

    async def some() -> None:
        for each in todo:
            await each

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(some())
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        for each in todo:
            each.close()
