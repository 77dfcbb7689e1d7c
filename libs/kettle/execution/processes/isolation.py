"""
What a job's processes do not share with the rest of the machine, as the one that starts them takes it upon itself.

Each of these is the property of one thread, and the child of a thread inherits it: so a thread of the starter that
lives only for that moment gives it to the job, and the starter itself stays as it was, for the next job.  A `fork`
would cost more than all of them.
"""

import _thread
import ctypes
import errno
import os
import posixpath
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Account, Isolation
from kettle.execution.sandbox.directory import PRIVATE, acting_as

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount point

_NO_NEW_PRIVILEGES: Final = 38
_NEW_MOUNTS: Final = 0x00020000
_NEW_IPC: Final = 0x08000000
_NOSUID, _NODEV, _BIND, _RECURSIVE, _SLAVE = 0x2, 0x4, 0x1000, 0x4000, 0x80000
_ANYBODY: Final = 0o1777
_PLACE: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

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

    def _make(self) -> None:
        """
        Make the job's own directories, if they are not there. Raises OSError: something else is.

        They belong to us, like the machine's: the job can neither remove nor exchange what else is mounted inside.
        """
        try:
            os.mkdir(f"{self.sandbox}/{PRIVATE}", 0o755)  # noqa: PTH102 - hot
        except FileExistsError:
            return  # the program's next life; who made it is seen when it is opened
        place = self._open()
        try:
            for directory in self.isolation.directories:
                own = f"/proc/self/fd/{place}/{_name(directory)}"
                os.mkdir(own)  # noqa: PTH102
                if (shown := self._shown_in(directory)) is not None:
                    os.makedirs(f"{own}/{posixpath.relpath(shown, directory)}", 0o755)  # noqa: PTH103
                os.chmod(own, _ANYBODY)  # noqa: PTH101
        finally:
            os.close(place)

    def enter(self, account: Account | None, directory: str) -> None:
        """
        Have the calling thread, and what it starts from here on, isolated, and in a directory that the account may enter.

        Raises OSError.
        """
        if self.isolation.directories:
            self._make()
        if self.mounts:
            _unshare(_NEW_MOUNTS | (_NEW_IPC if self.isolation.shared_memory else 0))
            # What the machine mounts and unmounts later is seen by the job too, as of an automounter, but not vice versa.
            _mount("none", "/", None, _RECURSIVE | _SLAVE)
            with ExitStack() as closing:
                self._mount_directories(closing)
            if self.isolation.shared_memory:
                size = f",size={self.memory}m" if self.memory else ""
                _mount("shm", SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, f"mode={_ANYBODY:o}{size}")
            if any(_is_below(directory, own) for own in self.isolation.directories):
                with acting_as(account):
                    os.chdir(directory)  # it was the machine's until now
        if self.isolation.no_new_privileges:
            lock_privileges()

    def _mount_directories(self, closing: ExitStack) -> None:
        if not self.isolation.directories:
            return
        place = self._open()
        closing.callback(os.close, place)
        shown = posixpath.dirname(self.sandbox)
        execute = os.open(shown, _PLACE)
        closing.callback(os.close, execute)
        hidden = False
        for directory in self.isolation.directories:
            _mount(f"/proc/self/fd/{place}/{_name(directory)}", directory, None, _BIND)
            hidden = hidden or self._shown_in(directory) is not None
        if hidden:
            _mount(f"/proc/self/fd/{execute}", shown, None, _BIND | _RECURSIVE)

    def _open(self) -> int:
        """Where the job's own directories are, which nobody but us has made."""
        place = os.open(f"{self.sandbox}/{PRIVATE}", _PLACE)
        if os.fstat(place).st_uid != os.geteuid():
            os.close(place)
            raise PermissionError(errno.EPERM, "the job has exchanged its directories")
        return place

    def _shown_in(self, directory: str) -> str | None:
        """The directory of the sandboxes, if it would be hidden behind the job's own `directory`."""
        execute = posixpath.dirname(self.sandbox)
        return execute if _is_below(execute, directory) else None


def lock_privileges() -> None:
    """What this thread executes from here on gets no rights beyond those that it has. Raises OSError."""
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise _error("no_new_privs")


def why_no_mounts() -> str:
    """Why this machine does not let us give a job mounts and shared memory of its own; empty: it does."""

    def attempt() -> int:
        _unshare(_NEW_MOUNTS | _NEW_IPC)
        _mount("none", "/", None, _RECURSIVE | _SLAVE)
        _mount("shm", SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, f"mode={_ANYBODY:o}")
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


def _name(directory: str) -> str:
    """What the job's own one is called in its sandbox: no two directories have one name."""
    return directory.strip("/").replace("%", "%25").replace("/", "%2F")


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


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
