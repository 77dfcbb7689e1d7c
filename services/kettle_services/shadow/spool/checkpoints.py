"""
What evicted jobs left for their next run, and checkpoints of those that run, one directory for each job, below the pool's own directory.

    <cluster>.<proc>/<attempt>-<n>          the n-th that this attempt left, complete
    <cluster>.<proc>/<attempt>-<n>.part     the same while it arrives; nobody reads it
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from kettle.accounts.rights import Rights
from kettle.transfer.checkpoint_manifest import DIRECTORY, WHERE
from kettle.transfer.file_lists import is_inside
from kettle.transfer.submit_side_paths import TransferPath
from kettle_services.shadow.file_transfer.output_files import Fetch, write
from kettle_services.shadow.files.access import FileAccess
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import OutputFile

_PART: Final = ".part"
_COMPLETE: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
"""Once there was no number."""
_JOB: Final = re.compile(r"[0-9]+\.[0-9]+")


def _order(path: Path) -> tuple[int, int]:
    """Attempt and number of what is at a place, complete or not; what is nothing of the kind comes first."""
    name = _COMPLETE.fullmatch(path.name.removesuffix(_PART))
    return (int(name[1]), int(name[2] or 0)) if name is not None else (-1, 0)


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk.  Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def condemned(spool: Path) -> Path:
    """
    Where checkpoints at URLs are named that are to be removed: one directory for each, with the URL and the manifest.
    """
    return spool.with_name("condemned")


def _where(place: Path) -> str:
    """At which URL a saved state has its checkpoint; empty if it has none."""
    path = place / WHERE
    return path.read_text(encoding="utf-8") if path.is_file() else ""


class Spool:
    """The saved files of all jobs of a shadow."""

    def __init__(self, directory: Path, *, condemns: Callable[[], object] = lambda: None) -> None:
        """
        `condemns` is called, from any thread, when there is a checkpoint at a URL that is to be removed.
        """
        self._directory = directory
        self.condemned = condemned(directory)
        self.condemns = condemns
        self._places = FileAccess(directory).of_job(directory, directory)

    async def save(
        self,
        job: JobId,
        attempt: int,
        files: Iterable[OutputFile],
        fetch: Fetch,
        owner: Rights | None = None,
    ) -> None:
        """
        Keep the files of an attempt, in place of those of an earlier one; all of them or none.

        When it returns, they survive a power failure: the job continues, and the earlier files are deleted.
        What there is of a checkpoint at a URL belongs to `owner`: with these rights it is removed there later.
        Raises OSError, or what `fetch` raises, or ValueError for a name that leads elsewhere.
        """
        place = await asyncio.to_thread(self._prepare, job, attempt)
        part = place.with_name(f"{place.name}{_PART}")
        for file in files:
            if not is_inside(file.name):
                raise ValueError(f"the worker names an output file {file.name!r} outside of its sandbox")
            await write(part / file.name, [file], fetch, mark="part", places=self._places)
            await asyncio.sleep(0)  # of very many small files, others wait for one only
        await asyncio.to_thread(self._settle, part, place, owner)

    def _prepare(self, job: JobId, attempt: int) -> Path:
        """Where the next that an attempt leaves will be, with an empty directory for what arrives."""
        number = max((n for a, n, _ in self._complete(job) if a == attempt), default=0) + 1
        place = self._directory / str(job) / f"{attempt}-{number}"
        part = place.with_name(f"{place.name}{_PART}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        return place

    def _settle(self, part: Path, place: Path, owner: Rights | None) -> None:
        """
        Make what has arrived last, then count, and take away only what is older: another attempt may have begun meanwhile.
        """
        if owner is not None and (part / DIRECTORY).is_dir():
            os.chown(part / DIRECTORY, owner.uid, owner.gid, follow_symlinks=False)
        for directory, _, names in os.walk(part, topdown=False):
            for name in names:
                _flush(Path(directory) / name)
            _flush(Path(directory))
        part.rename(place)
        for above in (place.parent, self._directory, self._directory.parent):  # each may be new
            _flush(above)
        ours = _order(place)
        for other in place.parent.iterdir():
            if _order(other) < ours:
                self._give_up(other, successor=place)

    def saved(self, job: JobId) -> list[TransferPath]:
        """What the next run of a job finds in its sandbox beside its input files, or instead of them."""
        complete = self._complete(job)
        if not complete:
            return []
        newest = max(complete)[2]
        return [
            TransferPath(
                PurePosixPath(directory) / name, str((Path(directory) / name).relative_to(newest)), saved=True
            )
            for directory, _, names in os.walk(newest)
            for name in sorted(names)
        ]

    def _complete(self, job: JobId) -> list[tuple[int, int, Path]]:
        """What there is of a job: attempt, number, place."""
        place = self._directory / str(job)
        found = list(place.iterdir()) if place.is_dir() else []
        return [(*_order(path), path) for path in found if _COMPLETE.fullmatch(path.name)]

    def drop(self, job: JobId) -> None:
        """The job needs it no more."""
        kept = self._directory / str(job)
        for place in kept.iterdir() if kept.is_dir() else ():
            self._give_up(place)
        shutil.rmtree(kept, ignore_errors=True)

    def _give_up(self, place: Path, *, successor: Path | None = None) -> None:
        """
        Remove something; a checkpoint that it has at a URL is condemned, unless its successor has the same.
        """
        remote = place / DIRECTORY
        if remote.is_dir() and (successor is None or _where(place) != _where(successor)):
            self.condemned.mkdir(mode=0o700, exist_ok=True)
            target = self.condemned / f"{place.parent.name}-{place.name}"
            shutil.rmtree(target, ignore_errors=True)
            remote.rename(target)
            self.condemns()
        shutil.rmtree(place, ignore_errors=True)

    def jobs(self) -> list[JobId]:
        """Whose files are here."""
        if not self._directory.is_dir():
            return []
        names = (path.name for path in self._directory.iterdir())
        return [JobId.parse(name) for name in names if _JOB.fullmatch(name)]
