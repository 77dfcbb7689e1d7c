"""
What a job's processes do not share with the rest of the machine, as the one that starts them takes it upon itself.

Each of these is the property of one thread, and the child of a thread inherits it: so a thread of the starter that
lives only for that moment gives it to the job, and the starter itself stays as it was, for the next job.  A `fork`
would cost more than all of them.
"""

import _thread
import os
import posixpath
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.processes.namespaces import failure, libc

_NO_NEW_PRIVILEGES: Final = 38

T = TypeVar("T")


class Enclosure(msgspec.Struct, frozen=True, kw_only=True):
    """The isolation of one job: what it is, for whom, and in which sandbox."""

    isolation: Isolation
    sandbox: str
    owner: tuple[str, str] = ("", "")
    """Whose job it is: an access point, and whom it names."""
    memory: int = 0
    """MiB that its shared memory may have at most; 0: no limit of its own."""

    @property
    def mounts(self) -> bool:
        """Whether the job sees other mounts than the machine."""
        return bool(self.isolation.directories) or self.isolation.shared_memory

    @property
    def execute(self) -> str:
        """The directory of the sandboxes."""
        return posixpath.dirname(self.sandbox)

    def may_follow(self, other: "Enclosure") -> bool:
        """Whether it is as another one, for a job of the same person."""
        return msgspec.structs.replace(other, sandbox=self.sandbox) == self and other.execute == self.execute

    def enter(self, keeper: NamespaceKeeper) -> None:
        """
        Have the calling thread, and what it starts from here on, isolated; at the root, if it sees other mounts now.

        The thread must end after that. Raises OSError.
        """
        if self.mounts:
            keeper.enter(self)
        if self.isolation.no_new_privileges:
            lock_privileges()


def lock_privileges() -> None:
    """What this thread executes from here on gets no rights beyond those that it has. Raises OSError."""
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise failure("no_new_privs")


@contextmanager
def files_of(account: Account | None) -> Generator[None]:
    """With the account's rights to files, for this thread alone: the others keep theirs."""
    if account is None:
        yield
        return
    uid, gid = os.geteuid(), os.getegid()
    libc.setfsgid(account.gid)
    libc.setfsuid(account.uid)
    try:
        yield
    finally:
        libc.setfsuid(uid)
        libc.setfsgid(gid)


def in_thread(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own, and wait for it; it returns and raises what the work does."""
    results: list[T] = []
    errors: list[BaseException] = []
    ended = _thread.allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            errors.append(error)
        finally:
            ended.release()

    _thread.start_new_thread(run, ())
    ended.acquire()
    if errors:
        raise errors[0]
    return results[0]
