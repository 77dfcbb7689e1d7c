"""
What evicted jobs left for their next run, and checkpoints of those that run, one directory for each job, below the pool's own directory.

    <cluster>.<proc>/<attempt>-<n>          the n-th that this attempt left, complete
    <cluster>.<proc>/<attempt>-<n>.part     the same while it arrives; nobody reads it
"""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

from kettle.shadow.domain.files import Wanted
from kettle.shadow.outputs import Fetch, write
from kettle.transfer.manifest import is_inside
from kettle.wire.jobs import JobId
from kettle.wire.work import OutputFile

_PART: Final = ".part"
_COMPLETE: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
"""Once there was no number."""
_JOB: Final = re.compile(r"[0-9]+\.[0-9]+")


class Spool:
    """
    The saved files of all jobs of a shadow.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def save(self, job: JobId, attempt: int, files: Iterable[OutputFile], fetch: Fetch) -> None:
        """
        Keep what an attempt left, in place of what an earlier one did; all of it or none.

        Raises OSError, or what `fetch` raises, or ValueError for a name that leads elsewhere.
        """
        number = max((n for a, n, _ in self._complete(job) if a == attempt), default=0) + 1
        place = self._directory / str(job) / f"{attempt}-{number}"
        part = place.with_name(f"{place.name}{_PART}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        for file in files:
            if not is_inside(file.name):
                raise ValueError(f"the worker names an output file {file.name!r} outside of its sandbox")
            await write(part / file.name, [file], fetch, mark="part")
        part.rename(place)
        for other in place.parent.iterdir():
            if other != place:
                shutil.rmtree(other, ignore_errors=True)

    def saved(self, job: JobId) -> list[Wanted]:
        """
        What the next run of a job finds in its sandbox beside its input files, or instead of them.
        """
        complete = self._complete(job)
        if not complete:
            return []
        newest = max(complete)[2]
        return [
            Wanted(
                PurePosixPath(directory) / name, str((Path(directory) / name).relative_to(newest)), saved=True
            )
            for directory, _, names in os.walk(newest)
            for name in sorted(names)
        ]

    def _complete(self, job: JobId) -> list[tuple[int, int, Path]]:
        """
        What there is of a job: attempt, number, place.
        """
        place = self._directory / str(job)
        found = [(path, _COMPLETE.fullmatch(path.name)) for path in place.iterdir()] if place.is_dir() else []
        return [(int(name[1]), int(name[2] or 0), path) for path, name in found if name is not None]

    def drop(self, job: JobId) -> None:
        """
        The job needs it no more.
        """
        shutil.rmtree(self._directory / str(job), ignore_errors=True)

    def jobs(self) -> list[JobId]:
        """
        Whose files are here.
        """
        if not self._directory.is_dir():
            return []
        names = (path.name for path in self._directory.iterdir())
        return [JobId.parse(name) for name in names if _JOB.fullmatch(name)]
