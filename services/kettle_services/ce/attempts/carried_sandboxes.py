"""
Where jobs have their files that share no file system with us: here, packed, until the node fetches them, and when it has sent them back.
"""

import asyncio
import contextlib
import errno
import os
import tarfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Final

import msgspec

from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, remove_tree
from kettle.execution.sandbox.kept_results import read_kept
from kettle.execution.sandbox.output_files import Results, collect
from kettle_services.ce.attempts.packing import add_inputs, listing_of, unpack
from kettle_services.ce.attempts.sandboxes import Kept, code_of, left_in
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.carried import JOB, Way, carried
from kettle_services.ce.domain.batch.script import number_in
from kettle_wire.ads import Ad
from kettle_wire.batch import BatchEnd

MOST_BYTES: Final = 8 << 30
"""Of the results of one job, packed or not."""
_DRAFT: Final = ".part"


class CarriedSandboxes:
    """Sandboxes for one batch system; `here` has a few files for each, by its intent."""

    def __init__(self, directory: str, here: Path, way: Callable[[str], Way]) -> None:
        """`directory`: where the nodes make theirs, each for itself."""
        self._directory: Final = directory
        self._here: Final = here
        self._way: Final = way

    def path(self, intent: str) -> str:
        """Where one is, on its node."""
        return f"{self._directory}/{intent}"

    async def make(self, run: Run, ad: Ad, inputs: Sequence[Input], script: str) -> None:
        """What a former life left in its place goes."""
        await asyncio.to_thread(self._make, run.intent, Kept(ad, script, {}), inputs)

    def _make(self, intent: str, kept: Kept, inputs: Sequence[Input]) -> None:
        self._removed(intent)
        self._here.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (
            self._new(intent, "in") as file,
            tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as archive,
        ):
            add_inputs(archive, [*inputs, Input(name=JOB, mode=0o600, data=kept.script.encode())])
        with self._new(intent, "kept") as file:
            file.write(msgspec.msgpack.encode(kept))

    def _new(self, intent: str, kind: str) -> IO[bytes]:
        return open(os.open(self._file(intent, kind), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")  # noqa: PTH123 - a descriptor

    def _file(self, intent: str, kind: str) -> Path:
        return self._here / f"{intent}.{kind}"

    def _kept(self, intent: str) -> Kept:
        return msgspec.msgpack.decode(self._file(intent, "kept").read_bytes(), type=Kept)

    async def script(self, run: Run) -> str:
        """It has the job's own token in it, and is nobody else's to read."""
        kept = await asyncio.to_thread(self._kept, run.intent)
        return carried(self.path(run.intent), self._way(run.intent), listing_of(JobAd(kept.ad)))

    async def left(self, run: Run) -> BatchEnd | None:
        """It comes with the results."""
        return await asyncio.to_thread(self._left, run.intent)

    def _left(self, intent: str) -> BatchEnd | None:
        return left_in(str(self._here / intent)) if self._unpacked(intent) else None

    async def begun(self, run: Run) -> str | None:
        """By the job that has fetched the files."""
        with contextlib.suppress(FileNotFoundError):
            return number_in(await asyncio.to_thread(self._file(run.intent, "by").read_text))
        return None

    async def results(self, run: Run, end: BatchEnd | None) -> Results:
        """What the node has sent."""
        return await asyncio.to_thread(self._results, run.intent, end)

    def _results(self, intent: str, end: BatchEnd | None) -> Results:
        job = JobAd(self._kept(intent).ad)
        if not self._unpacked(intent):
            if job.transfers:
                raise OSError(errno.ENODATA, "its node has sent no results")
            (self._here / intent).mkdir(mode=0o700, exist_ok=True)
        return collect(Sandbox(str(self._here / intent)), job, {}, code=code_of(end))

    def _unpacked(self, intent: str) -> bool:
        """Whether its results are there, which are unpacked once."""
        packed, place = self._file(intent, "out"), self._here / intent
        if not place.exists():
            if not packed.exists():
                return False
            with packed.open("rb") as file:
                unpack(file, place, most=MOST_BYTES)
        return True

    async def read(self, run: Run, name: str, offset: int, length: int) -> bytes:
        """As the port says."""
        return await asyncio.to_thread(read_kept, str(self._here / run.intent), name, offset, length)

    async def remove(self, intent: str) -> None:
        """What is here; a node removes its own."""
        await asyncio.to_thread(self._removed, intent)

    def _removed(self, intent: str) -> None:
        """Its token opens nothing from now on."""
        drafts = self._here.glob(f"{intent}.*{_DRAFT}")
        for path in (*(self._file(intent, kind) for kind in ("kept", "in", "by", "out")), *drafts):
            path.unlink(missing_ok=True)
        if (self._here / intent).exists():
            remove_tree(str(self._here / intent))

    async def others(self, known: Collection[str]) -> list[str]:
        """As the port says."""
        there = await asyncio.to_thread(lambda: [path.stem for path in self._here.glob("*.kept")])
        return [intent for intent in there if intent not in known]

    # -- what a node asks --------------------------------------------------------------------------------------------

    def inputs(self, intent: str, number: str) -> Path | None:
        """
        The packed files of a job for the first job of the batch system that fetches them; None: another one has.

        Raises FileNotFoundError: there is no such job, or not any more.
        """
        packed = self._file(intent, "in")
        packed.stat()
        try:
            fd = os.open(self._file(intent, "by"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return packed if self._file(intent, "by").read_text() == number else None
        with open(fd, "w") as file:  # noqa: PTH123 - a descriptor
            file.write(number)
        return packed

    def draft(self, intent: str) -> IO[bytes]:
        """
        Where results are written to while they come; it is gone when it is closed.

        Each upload has one of its own: a node that was not answered sends all again, while what it sent before may still be written.

        Raises FileNotFoundError: there is no such job that has begun.
        """
        self._file(intent, "by").stat()
        return NamedTemporaryFile(dir=self._here, prefix=f"{intent}.", suffix=_DRAFT)

    def arrived(self, intent: str, draft: IO[bytes]) -> None:
        """
        They are there as a whole; those that came first stay.

        Raises FileNotFoundError: the job is over.
        """
        draft.flush()
        os.fsync(draft.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft.name, self._file(intent, "out"))
