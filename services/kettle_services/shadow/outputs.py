"""
Reading the files that jobs have left, for people who ask, with the rights of each job's owner.

Who may, and where the files lie, the schedd says.  Only what a job has left is read, never another file beside it: its standard
streams, what it names in `transfer_output_files`, and of a job whose files were sent here everything in its directory.
"""

import asyncio
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import msgspec

from kettle.accounts.lookup import StrangerError
from kettle.bus.ports import Bus, BusError, RefusedError, Served
from kettle.transfer.directory_walk import walk
from kettle.transfer.file_lists import is_inside, is_url, remaps
from kettle.transfer.spooled_jobs import is_spooled
from kettle.transfer.submit_side_paths import STDERR, STDOUT, TransferPath, destination, results, text
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.settings import ShadowSettings
from kettle_services.shadow.spool.job_files import SpooledFiles
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.outputs import (
    FIND_OUTPUTS,
    LIST_OUTPUTS,
    MOST_OUTPUTS,
    READ_OUTPUT,
    FindOutputs,
    LeftFile,
    ListOutputs,
    OutputPiece,
    OutputsListed,
    ReadOutput,
)
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

T = TypeVar("T")

_THREADS: Final = 4
_TRUSTED_S: Final = 5.0
"""How long the schedd's word about a job and a person is believed: a large file is read in many pieces."""
_TRUSTED: Final = 1_000
_LOOKED_AT: Final = 100_000
"""Files of one job, at most."""
_AGAIN_MS: Final = 500


class JobResults(msgspec.Struct, frozen=True):
    """What a job has left, and how its files are used."""

    job: JobId
    ad: Ad
    access: FileAccess

    @classmethod
    def of(cls, job: JobId, ad: Ad, access: FileAccess, spooled: SpooledFiles) -> "JobResults":
        """
        A spooled job's lie in the directory that was made for it, whatever its ad says, which its owner may edit.
        """
        return cls(job, {**ad, "Iwd": str(spooled.directory(job))} if is_spooled(ad) else ad, access)

    def names(self) -> list[str]:
        """What the job says that it leaves: files and directories, by their names in the sandbox."""
        return [STDERR, STDOUT, *results(self.ad)]

    def place(self, name: str) -> Path | None:
        """Where a file is; None: nowhere here.  Raises RefusedError for one that the job does not name."""
        if not is_inside(name) or not (
            is_spooled(self.ad) or any(name == each or name.startswith(f"{each}/") for each in self.names())
        ):
            raise _absent(self.job, name)
        if is_url(remaps(text(self.ad, "TransferOutputRemaps")).find(name) or ""):
            return None
        target = destination(self.ad, name)
        return None if target is None else Path(target)

    def files(self) -> list[LeftFile]:
        """Those that are there, in the order of their names."""
        roots = [TransferPath(PurePosixPath(text(self.ad, "Iwd")), "", contents=True)]
        if not is_spooled(self.ad):
            named = [(name, self.place(name)) for name in dict.fromkeys(self.names())]
            roots = [TransferPath(PurePosixPath(path), name) for name, path in named if path is not None]
        found: dict[str, LeftFile] = {}
        for root in roots:
            for file in self.access.act("list", root.path, partial(self._below, root)):
                found[file.name] = file
        return [found[name] for name in sorted(found)]

    def _below(self, root: TransferPath) -> list[LeftFile]:
        found: list[LeftFile] = []
        try:
            for number, (path, name) in enumerate(walk(root, listed=self.access.listed)):
                if number >= _LOOKED_AT:
                    raise RefusedError(
                        RefusalCode.TOO_LARGE,
                        f"job {self.job} has left more than {_LOOKED_AT} files, which are too many to list: ask for one by its name",
                    )
                if name is not None and is_inside(name) and (file := self._file(path, name)) is not None:
                    found.append(file)
        except OSError:
            pass  # it is not there, or not the owner's to look at: the others are listed
        return found

    def _file(self, path: Path, name: str) -> LeftFile | None:
        try:
            with self.access.found(str(path), but_spool=True) as place:
                about = os.fstat(place)
        except OSError:
            return None  # a link to nowhere, or to what is not the owner's to read
        return _left(name, about) if stat.S_ISREG(about.st_mode) else None

    def read(self, name: str, offset: int, length: int) -> OutputPiece:
        """A piece of one.  Raises RefusedError, OSError or ValueError."""
        path = self.place(name)
        if path is None:
            raise _absent(self.job, name)
        return self.access.act("read", path, partial(self._read, path, name, offset, length))

    def _read(self, path: Path, name: str, offset: int, length: int) -> OutputPiece:
        fd = self.access.open_input(path)
        try:
            return OutputPiece(file=_left(name, os.fstat(fd)), data=os.pread(fd, length, offset))
        finally:
            os.close(fd)


class JobOutputs:
    """Answers people."""

    def __init__(self, bus: Bus, settings: ShadowSettings, owners: Owners, spooled: SpooledFiles) -> None:
        self._bus = bus
        self._settings = settings
        self._owners = owners
        self._spooled = spooled
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="outputs")
        self._known: OrderedDict[tuple[JobId, str], tuple[float, JobResults]] = OrderedDict()

    def served(self) -> list[Served[Any, Any]]:
        """The requests of people."""
        return [Served(LIST_OUTPUTS, self.list), Served(READ_OUTPUT, self.read)]

    async def list(self, request: ListOutputs, caller: Identity) -> OutputsListed:
        """What a job has left."""
        left = await self._left(request.job, caller)
        try:
            found = await self._on_disk(left.files)
        except (OSError, ValueError) as error:
            raise _unreadable(f"the files of job {request.job}", error) from error
        files = [file for file in found if file.name > request.after]
        return OutputsListed(files=files[:MOST_OUTPUTS], more=len(files) > MOST_OUTPUTS)

    async def read(self, request: ReadOutput, caller: Identity) -> OutputPiece:
        """A piece of it."""
        left = await self._left(request.job, caller)
        try:
            return await self._on_disk(partial(left.read, request.name, request.offset, request.length))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _absent(request.job, request.name) from error
        except (OSError, ValueError) as error:
            raise _unreadable(f"the file {request.name} of job {request.job}", error) from error

    def close(self) -> None:
        """Answer nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _left(self, job: JobId, caller: Identity) -> JobResults:
        """Raises RefusedError: the caller may not read them, or they are not here any more."""
        now = asyncio.get_running_loop().time()
        until, known = self._known.get((job, caller.name), (0.0, None))
        if known is not None and until > now:
            return known
        try:
            request = FindOutputs(job=job, person=caller.name)
            found = await self._bus.call(
                FIND_OUTPUTS, self._settings.schedd, request, deadline=self._settings.call_deadline
            )
        except RefusedError:
            raise
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the schedd does not answer: {error}", retry_after_ms=_AGAIN_MS
            ) from error
        if is_spooled(found.ad) and not found.present:
            raise RefusedError(
                RefusalCode.GONE,
                f"the files of job {job} were removed here when it left the queue, after they had been fetched or their time was over",
            )
        try:
            access = await self._owners.access(job, found.ad)
        except StrangerError as error:
            raise RefusedError(RefusalCode.UNREADABLE, str(error)) from error
        left = JobResults.of(job, found.ad, access, self._spooled)
        self._known.pop((job, caller.name), None)
        self._known[job, caller.name] = now + _TRUSTED_S, left
        while len(self._known) > _TRUSTED:
            self._known.popitem(last=False)
        return left

    async def _on_disk(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _left(name: str, about: os.stat_result) -> LeftFile:
    return LeftFile(name, about.st_size, about.st_mtime_ns // 1000)


def _absent(job: JobId, name: str) -> RefusedError:
    return RefusedError(RefusalCode.NOT_FOUND, f"job {job} has left no file {name!r}")


def _unreadable(what: str, error: OSError | ValueError) -> RefusedError:
    why = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return RefusedError(RefusalCode.UNREADABLE, f"{what} cannot be read: {why}")
