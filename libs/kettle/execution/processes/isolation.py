"""
What a job's processes do not share with the rest of the machine, as the one that starts them takes it upon itself.

Each of these is the property of one thread, and the child of a thread inherits it: so a thread of the starter that
lives only for that moment gives it to the job, and the starter itself stays as it was, for the next job.  A `fork`
would cost more than all of them.
"""

import _thread
import ctypes
import os
import posixpath
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.sandbox import private_directories
from kettle.execution.sandbox.directory import acting_as
from kettle.execution.sandbox.private_directories import is_below, name_of

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount point

_NO_NEW_PRIVILEGES: Final = 38
_NEW_MOUNTS: Final = 0x00020000
_NEW_IPC: Final = 0x08000000
_NOSUID, _NODEV, _BIND, _RECURSIVE, _SLAVE = 0x2, 0x4, 0x1000, 0x4000, 0x80000

_libc: Final = ctypes.CDLL(None, use_errno=True)


class Enclosure(msgspec.Struct, frozen=True, kw_only=True):
    """The isolation of one job: what it is, and in which sandbox."""

    isolation: Isolation
    sandbox: str
    memory: int = 0
    """MiB that its shared memory may have at most; 0: no limit of its own."""

    @property
    def mounts(self) -> bool:
        """Whether the job sees other mounts than the machine."""
        return bool(self.isolation.directories) or self.isolation.shared_memory

    def enter(self, account: Account | None, directory: str) -> None:
        """
        Have the calling thread, and what it starts from here on, isolated, and in a directory that the account may enter.

        Raises OSError.
        """
        if self.mounts:
            _unshare(_NEW_MOUNTS | (_NEW_IPC if self.isolation.shared_memory else 0))
            # What the machine mounts and unmounts later is seen by the job too, as of an automounter, but not vice versa.
            _mount("none", "/", None, _RECURSIVE | _SLAVE)
            if self.isolation.directories:
                with ExitStack() as closing:
                    self._mount_directories(closing)
            if self.isolation.shared_memory:
                size = f",size={self.memory}m" if self.memory else ""
                _mount("shm", SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, f"mode=1777{size}")
            if any(is_below(directory, own) for own in self.isolation.directories):
                with acting_as(account):
                    os.chdir(directory)  # it was the machine's until now
        if self.isolation.no_new_privileges:
            lock_privileges()

    def _mount_directories(self, closing: ExitStack) -> None:
        execute = posixpath.dirname(self.sandbox)
        place = private_directories.make(self.sandbox, self.isolation.directories, shown=execute)
        closing.callback(os.close, place)
        shown = os.open(execute, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        closing.callback(os.close, shown)
        for directory in self.isolation.directories:
            _mount(f"/proc/self/fd/{place}/{name_of(directory)}", directory, None, _BIND)
        if any(is_below(execute, directory) for directory in self.isolation.directories):
            _mount(f"/proc/self/fd/{shown}", execute, None, _BIND | _RECURSIVE)


def lock_privileges() -> None:
    """What this thread executes from here on gets no rights beyond those that it has. Raises OSError."""
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _error("no_new_privs")


def why_no_mounts() -> str:
    """Why this machine does not let us give a job mounts and shared memory of its own; empty: it does."""

    def attempt() -> int:
        _unshare(_NEW_MOUNTS | _NEW_IPC)
        _mount("none", "/", None, _RECURSIVE | _SLAVE)
        _mount("shm", SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, "mode=1777")
        _mount(SHARED_MEMORY, SHARED_MEMORY, None, _BIND)
        return 0

    try:
        in_thread(attempt)
    except OSError as error:
        return str(error)
    return ""


def join_mounts(pid: int) -> None:
    """Have the calling process see the mounts and System V objects of another one. Raises OSError."""
    for kind, flag in (("ipc", _NEW_IPC), ("mnt", _NEW_MOUNTS)):
        fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _libc.setns(fd, flag):
                raise _error(kind)
        finally:
            os.close(fd)


def in_thread(work: Callable[[], int]) -> int:
    """Do the work in a thread of its own, and wait for it; it returns and raises what the work does."""
    results: list[int] = []
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


def _unshare(what: int) -> None:
    if _libc.unshare(what):
        raise _error("namespaces")


def _mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if _libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]):
        raise _error(target)


def _error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)
