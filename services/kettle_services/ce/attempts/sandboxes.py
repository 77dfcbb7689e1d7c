"""Where jobs at a batch system have their files: on a file system that this machine shares with the nodes."""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from kettle.accounts.lookup import Accounts
from kettle.accounts.rights import Rights, act_as
from kettle.execution.attempts.job_spec import Input
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Mark, Sandbox, remove_tree
from kettle.execution.sandbox.kept_results import read_kept
from kettle.execution.sandbox.output_files import Results, collect
from kettle.execution.sandbox.safe_open import open_beneath
from kettle_services.ce.domain.attempts.attempt import Run
from kettle_services.ce.domain.batch.script import BEGUN, OURS, left, number_in
from kettle_wire.ads import Ad
from kettle_wire.batch import BatchEnd

T = TypeVar("T")
_END_BYTES: Final = 4096
_KEPT_BYTES: Final = 64 << 20


class Kept(msgspec.Struct, frozen=True):
    """What is needed of a job when it has ended, kept in its sandbox."""

    ad: Ad
    script: str
    before: dict[str, Mark]
    """The files that lay in its sandbox before it began."""


class AwayError(OSError):
    """The host of a sandbox does not answer, which says nothing about what is there: it is asked again."""


class Sandboxes(Protocol):
    """
    Sandboxes by the intents of jobs; what is done to one raises AwayError besides, if its host does not answer.
    """

    def path(self, intent: str) -> str:
        """Where one is, for the job."""
        ...

    async def make(self, run: Run, ad: Ad, inputs: Sequence[Input], script: str) -> None:
        """
        Make one, with its files, and with the script that the batch system is to run.  Raises OSError, StrangerError.
        """
        ...

    async def script(self, run: Run) -> str:
        """That script.  Raises OSError."""
        ...

    async def left(self, run: Run) -> BatchEnd | None:
        """How the job ended by its own word.  Raises OSError: it cannot be read now."""
        ...

    async def begun(self, run: Run) -> str | None:
        """
        By which job of the batch system its script was begun; empty: by one that has not said its number yet, None: by none.  Raises OSError.
        """
        ...

    async def results(self, run: Run, end: BatchEnd | None) -> Results:
        """What it left as its results.  Raises OSError, ManifestError, TooManyResultsError, StrangerError."""
        ...

    async def read(self, run: Run, name: str, offset: int, length: int) -> bytes:
        """A piece of a result that did not go with the report.  Raises OSError."""
        ...

    async def remove(self, intent: str) -> None:
        """Remove one.  Raises OSError."""
        ...

    async def others(self, known: Collection[str]) -> list[str]:
        """Sandboxes that are of none of these intents.  Raises OSError."""
        ...


class LocalSandboxes:
    """
    Directories below one that belongs to this service, each its job's owner's; what is in them is touched with the owner's rights.
    """

    def __init__(self, directory: str, accounts: Accounts) -> None:
        self._directory: Final = directory
        self._accounts: Final = accounts

    def path(self, intent: str) -> str:
        """It is the same for us."""
        return f"{self._directory}/{intent}"

    async def make(self, run: Run, ad: Ad, inputs: Sequence[Input], script: str) -> None:
        """What a former life left in its place goes."""
        rights = await self._rights(run)
        await asyncio.to_thread(self._make, run.intent, rights, inputs, partial(Kept, ad, script))

    def _make(
        self,
        intent: str,
        rights: Rights | None,
        inputs: Sequence[Input],
        kept: Callable[[dict[str, Mark]], Kept],
    ) -> None:
        path = self.path(intent)
        Path(self._directory).mkdir(mode=0o755, parents=True, exist_ok=True)
        if os.path.lexists(path):
            remove_tree(path)
        os.mkdir(path, 0o700)  # noqa: PTH102 - a string
        if rights is not None:
            os.chown(path, rights.uid, rights.gid)
        for file in inputs:
            _place(path, file, rights)
        sandbox = Sandbox(path)

        def keep() -> None:
            Path(path, OURS).mkdir(mode=0o700)
            Path(path, OURS, "kept").write_bytes(msgspec.msgpack.encode(kept(sandbox.catalogue())))

        act_as(rights, keep)

    async def script(self, run: Run) -> str:
        """As the port says."""
        return (await self._as_owner(run, partial(kept_in, self.path(run.intent)))).script

    async def left(self, run: Run) -> BatchEnd | None:
        """As the port says."""
        return await self._as_owner(run, partial(left_in, self.path(run.intent)))

    async def begun(self, run: Run) -> str | None:
        """As the port says."""
        return await self._as_owner(run, partial(_begun, self.path(run.intent)))

    async def results(self, run: Run, end: BatchEnd | None) -> Results:
        """As the port says."""
        return await self._as_owner(run, partial(results_in, self.path(run.intent), end))

    async def read(self, run: Run, name: str, offset: int, length: int) -> bytes:
        """As the port says."""
        return await self._as_owner(run, partial(read_kept, self.path(run.intent), name, offset, length))

    async def remove(self, intent: str) -> None:
        """As the port says."""
        await asyncio.to_thread(_removed, self.path(intent))

    async def others(self, known: Collection[str]) -> list[str]:
        """As the port says."""
        return await asyncio.to_thread(_others, self._directory, known)

    async def _as_owner(self, run: Run, work: Callable[[], T]) -> T:
        rights = await self._rights(run)
        return await asyncio.to_thread(act_as, rights, work)

    async def _rights(self, run: Run) -> Rights | None:
        return await self._accounts.find(run.owner) if run.owner else None


def _place(path: str, file: Input, rights: Rights | None) -> None:
    """
    Put a file in: it is made with the rights of the owner, who may do anything there meanwhile, and filled with what only we can read.
    """
    target = f"{path}/{file.name}"
    if file.directory:
        act_as(rights, lambda: Path(target).mkdir(mode=0o755, parents=True, exist_ok=True))
        return

    def made() -> int:
        Path(target).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        return os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    with open(act_as(rights, made), "wb") as sink:  # noqa: PTH123 - a descriptor
        if file.data is not None:
            sink.write(file.data)
        else:
            with Path(file.path).open("rb") as source:
                shutil.copyfileobj(source, sink, 1 << 20)
        os.fchmod(sink.fileno(), (file.mode & 0o777) | 0o600)


def left_in(path: str) -> BatchEnd | None:
    """How the job of a sandbox ended by its own word; None: it has left none.  Raises OSError."""
    try:
        return left(_read(path, f"{OURS}/end", _END_BYTES).decode(errors="replace"))
    except FileNotFoundError:
        return None


def _begun(path: str) -> str | None:
    try:
        return number_in(_read(path, f"{BEGUN}/by", _END_BYTES).decode(errors="replace"))
    except FileNotFoundError:
        return "" if os.path.isdir(f"{path}/{BEGUN}") else None  # noqa: PTH112 - a string


def _read(path: str, name: str, most: int) -> bytes:
    """
    What a file begins with that the job may have put a pipe, a device or a link in the place of: they raise OSError.
    """
    with open(open_beneath(path, name), "rb") as file:  # noqa: PTH123 - a descriptor
        return file.read(most)


def kept_in(path: str) -> Kept:
    """What was kept in a sandbox.  Raises OSError."""
    try:
        return msgspec.msgpack.decode(_read(path, f"{OURS}/kept", _KEPT_BYTES), type=Kept)
    except msgspec.MsgspecError as error:
        raise OSError(errno.EBADMSG, f"the job has changed {path}/{OURS}: {error}") from None


def results_in(path: str, end: BatchEnd | None) -> Results:
    """What a job left in a directory as its results."""
    kept = kept_in(path)
    return collect(Sandbox(path), JobAd(kept.ad), kept.before, code=code_of(end))


def code_of(end: BatchEnd | None) -> int:
    """How it ended as one number: its exit code, or the negative of a signal."""
    if end is None:
        return 0
    return end.exit_code if end.exit_code is not None else -(end.signal or 0)


def _removed(path: str) -> None:
    if os.path.lexists(path):
        remove_tree(path)


def _others(directory: str, known: Collection[str]) -> list[str]:
    try:
        return [name for name in os.listdir(directory) if name not in known]  # noqa: PTH208 - strings
    except FileNotFoundError:
        return []
