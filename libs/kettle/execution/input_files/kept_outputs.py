"""
What a job has made stays on its machine for a while, for the job that comes next: the job's owner asks for it.

It goes to the submitter as always.  When that is recorded, the machine copies it into its input files before it removes the sandbox.
There it is known by its SHA-256 like any other: a job gets it whose shadow announces a file with the same contents.  So nobody gets
anything here that was not sent to its job, and a job elsewhere fetches its files as if nothing were kept.

It is a copy and not the file itself, because that may still be open, or be part of somebody's memory: a process of the job's account
could change it later without a trace, and it would be another owner's input then.
"""

import asyncio
import errno
import hashlib
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.execution.input_files.cache import InputCache
from kettle.execution.sandbox.kept_results import open_kept
from kettle.jobs.kept_outputs import KEPT_OUTPUTS_OF, cluster_name
from kettle.threads.to_the_end import to_the_end
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

_MOST: Final = 64
"""Clusters that are named in an ad."""
_PIECE: Final = 1 << 20
_MODE: Final = 0o600
_log: Final = logging.getLogger(__name__)


class _Result(msgspec.Struct, frozen=True):
    """A file that is kept."""

    of: str
    size: int
    until: float


class KeptOutputs:
    """The results that one machine keeps, within a number of bytes and of seconds."""

    def __init__(
        self,
        cache: InputCache,
        *,
        limit_bytes: int,
        lifetime: float,
        changed: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        `limit_bytes`: of all of them, beside which the cache has its own; `changed`: is told of whose jobs there are results now, as the
        machine's ad says it.
        """
        self._cache = cache
        self._limit = limit_bytes
        self._lifetime = lifetime
        self._changed = changed
        self._clock = clock
        self._results: OrderedDict[str, _Result] = OrderedDict()
        """By SHA-256, the oldest one first."""
        self._coming: dict[str, int] = {}
        """Of whose jobs there will be results, and how many jobs these are."""
        self._said = ""

    def expect(self, schedd: str, job: JobId) -> None:
        """A job has ended whose results will be kept when they have arrived: its machine says so at once."""
        of = cluster_name(schedd, job.cluster)
        self._coming[of] = self._coming.get(of, 0) + 1
        self._tell()

    async def keep(self, schedd: str, job: JobId, directory: Path, names: Sequence[str]) -> None:
        """
        Copy results of a job that was expected into the cache, but what is too large, or no file of its own.
        """
        of = cluster_name(schedd, job.cluster)
        try:
            for name in names:
                try:
                    await self._keep_one(of, directory, name)
                except OSError as error:
                    _log.warning("a result is not kept", extra={"file": name, "cause": str(error)})
        finally:
            left = self._coming.pop(of, 1) - 1
            if left:
                self._coming[of] = left
            self._tell()

    async def watch(self) -> None:
        """Let go of what has been kept long enough; never returns."""
        while True:
            await asyncio.sleep(self._lifetime / 4)
            self.expire()

    def expire(self) -> None:
        """Let go of what has been kept long enough."""
        now = self._clock()
        for digest in [digest for digest, each in self._results.items() if each.until <= now]:
            self._drop(digest)
        self._tell()

    async def _keep_one(self, of: str, directory: Path, name: str) -> None:
        with _opened(directory, name) as (source, size):
            if size > self._limit:
                return
            with self._cache.awaited(size):
                digest = await to_the_end(self._copy, source, size)
                self._cache.add(digest, size)
        self._results[digest] = _Result(of, size, self._clock() + self._lifetime)
        self._results.move_to_end(digest)
        excess = sum(each.size for each in self._results.values()) - self._limit
        for other in list(self._results):
            if excess <= 0:
                break
            excess -= self._results[other].size
            self._drop(other)

    def _copy(self, source: int, size: int) -> str:
        """Copy an open file into the cache; the SHA-256 of the copy.  Blocks on the disk; raises OSError."""
        draft, total, copied = self._cache.draft(source), hashlib.sha256(), 0
        try:
            with open(draft, "xb", opener=lambda path, flags: os.open(path, flags, _MODE)) as copy:
                while (piece := os.read(source, _PIECE)) and copied <= size:
                    total.update(piece)
                    copied += copy.write(piece)
            if copied != size:
                raise OSError(errno.ESTALE, "somebody has changed it meanwhile")
            draft.rename(self._cache.place(total.hexdigest()))
        finally:
            draft.unlink(missing_ok=True)
        return total.hexdigest()

    def _drop(self, digest: str) -> None:
        del self._results[digest]
        self._cache.remove(digest)

    def _tell(self) -> None:
        """Say of whose jobs there are results, if that is something else than before."""
        there = {each.of: None for digest, each in self._results.items() if digest in self._cache}
        said = ",".join([*there, *(of for of in self._coming if of not in there)][-_MOST:])
        if said != self._said:
            self._said = said
            self._changed(said)


def advertised(said: str) -> Ad:
    """What a machine says of it, which is nothing as long as nothing is kept."""
    return {KEPT_OUTPUTS_OF: said} if said else {}


@contextmanager
def _opened(directory: Path, name: str) -> Generator[tuple[int, int]]:
    """
    A result in a sandbox, open to be read, and its size.  Raises OSError, also for what is no file of its own: the job may have made a link on the way or at its end.
    """
    file = open_kept(str(directory), name)
    try:
        status = os.fstat(file)
        if status.st_nlink != 1:
            raise OSError(errno.EINVAL, "it is no file of its own", name)
        yield file, status.st_size
    finally:
        os.close(file)
