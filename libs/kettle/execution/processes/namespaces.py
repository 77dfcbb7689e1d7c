"""
The namespaces of a job's mounts and IPC objects: made by the thread that starts the job, kept by descriptors.

To make them, and for the kernel to remove them, costs a short job a tenth of all that it costs; to enter those that exist
costs next to nothing.  So the next job gets the same ones if nothing can be found in them (see `kept_namespaces`).
"""

import ctypes
import errno
import os
import posixpath
import select
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final

from kettle.execution.sandbox import private_directories
from kettle.execution.sandbox.private_directories import is_below, name_of

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a mount point
_QUEUES: Final = "/dev/mqueue"
_SYSTEM_V: Final = ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg")
_HEADING: Final = 1
"""Lines of a list of System V objects in which there are none."""
_LIST_BYTES: Final = 4096

_NEW_MOUNTS: Final = 0x00020000
_NEW_IPC: Final = 0x08000000
_OWN_DIRECTORY: Final = 0x00000200
"""CLONE_FS: a thread that shares its working directory with others cannot change its mounts."""
_NOSUID, _NODEV, _NOEXEC, _BIND, _RECURSIVE, _SLAVE = 0x2, 0x4, 0x8, 0x1000, 0x4000, 0x80000
_KINDS: Final = (("mnt", _NEW_MOUNTS), ("ipc", _NEW_IPC))

libc: Final = ctypes.CDLL(None, use_errno=True)


class Namespaces:
    """
    Namespaces that exist as long as this object, also while no process is in them.

    It is made by a thread that lives only for the start of a job: that thread, and what it starts from here on, is in
    them.  Raises OSError; then the thread is good for nothing else.
    """

    def __init__(self, sandbox: str, directories: Sequence[str], *, shared_memory: bool, memory: int) -> None:
        """`memory`: MiB that the shared memory may have at most; 0: no limit of its own."""
        self._closing = ExitStack()
        self._found: list[tuple[int, set[str]]] = []
        """Directories by their descriptors, and what is in each of them before a job writes there."""
        self._lists: list[int] = []
        """Of System V objects."""
        try:
            # Where nothing comes by itself, we have to hear of each change.
            self._mounts_of_machine = None if _propagates() else self._open("/proc/self/mounts")
            _unshare(_NEW_MOUNTS | (_NEW_IPC if shared_memory else 0))
            # What the machine mounts and unmounts later is seen by the job too, as of an automounter, but not vice versa.
            mount("none", "/", None, _RECURSIVE | _SLAVE)
            self.place = self._mount_directories(sandbox, directories) if directories else None
            if shared_memory:
                self._mount_ipc(memory)
            kinds = _KINDS if shared_memory else _KINDS[:1]
            self._entries = [(self._open(f"/proc/thread-self/ns/{kind}"), kind, flag) for kind, flag in kinds]
        except BaseException:
            self.close()
            raise

    def enter(self) -> None:
        """Have the calling thread, and what it starts from here on, in them, at the root.  Raises OSError."""
        _unshare(_OWN_DIRECTORY)
        for entry in self._entries:
            _set(*entry)

    def is_current(self) -> bool:
        """Whether a job in them sees what the machine has mounted and unmounted since they were made."""
        if self._mounts_of_machine is None:
            return True
        poll = select.poll()
        poll.register(self._mounts_of_machine, select.POLLPRI)
        return not poll.poll(0)

    def is_empty(self) -> bool:
        """
        Whether nothing is in them that a job has made.  Its processes must have ended, and can have mounted nothing.
        """
        return all(set(os.listdir(fd)) == before for fd, before in self._found) and all(  # noqa: PTH208 - a descriptor
            os.pread(fd, _LIST_BYTES, 0).count(b"\n") == _HEADING for fd in self._lists
        )

    def close(self) -> None:
        """Have them end with the last process in them."""
        self._closing.close()

    def _open(self, path: str, flags: int = 0) -> int:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        self._closing.callback(os.close, fd)
        return fd

    def _watch(self, path: str) -> None:
        fd = self._open(path, os.O_DIRECTORY)
        self._found.append((fd, set(os.listdir(fd))))  # noqa: PTH208 - a descriptor

    def _mount_directories(self, sandbox: str, directories: Sequence[str]) -> tuple[int, int]:
        """Which directory holds those of the job, by device and inode."""
        execute = posixpath.dirname(sandbox)
        with ExitStack() as closing:
            place = private_directories.make(sandbox, directories, shown=execute)
            closing.callback(os.close, place)
            shown = os.open(execute, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            closing.callback(os.close, shown)
            for directory in directories:
                own = f"/proc/self/fd/{place}/{name_of(directory)}"
                self._watch(own)
                mount(own, directory, None, _BIND)
            if any(is_below(execute, directory) for directory in directories):
                mount(f"/proc/self/fd/{shown}", execute, None, _BIND | _RECURSIVE)
            about = os.fstat(place)
            return about.st_dev, about.st_ino

    def _mount_ipc(self, memory: int) -> None:
        if queues := _mount_queues():
            self._watch(queues)
        _mount_shared_memory(memory)
        self._watch(SHARED_MEMORY)
        for path in _SYSTEM_V:
            with suppress(FileNotFoundError):  # a kernel without them
                self._lists.append(self._open(path))


def why_no_mounts() -> str:
    """
    Why this machine does not let us give a job mounts and shared memory of its own; empty: it does.

    For a thread that lives only for this.
    """
    try:
        _unshare(_NEW_MOUNTS | _NEW_IPC)
        mount("none", "/", None, _RECURSIVE | _SLAVE)
        _mount_queues()
        _mount_shared_memory(0)
        mount(SHARED_MEMORY, SHARED_MEMORY, None, _BIND)
    except OSError as error:
        return str(error)
    return ""


def join(pid: int) -> None:
    """Have the calling process see the mounts and System V objects of another one. Raises OSError."""
    for kind, flag in reversed(_KINDS):
        fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _set(fd, kind, flag)
        finally:
            os.close(fd)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """As the system call. Raises OSError."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    if libc.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]):
        raise failure(target)


def failure(what: str) -> OSError:
    """The error of the system call that has just failed."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


def _propagates() -> bool:
    """Whether mounts of this process's namespace reach those that were made of it, as systemd has it."""
    with open("/proc/self/mountinfo", "rb") as file:  # noqa: PTH123 - hot
        return any(line.split(b" ", 5)[4] == b"/" and b" shared:" in line for line in file)


def _mount_queues() -> str:
    """
    Where the machine shows its message queues, the job's are shown to the job; elsewhere they lie below its shared memory,
    only for us.  Returns where; empty: this kernel has no queues.
    """
    place = _QUEUES if os.path.isdir(_QUEUES) else SHARED_MEMORY  # noqa: PTH112 - a string
    try:
        mount("mqueue", place, "mqueue", _NOSUID | _NODEV | _NOEXEC)
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise
        return ""
    return place


def _mount_shared_memory(memory: int) -> None:
    size = f",size={memory}m" if memory else ""
    mount("shm", SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV, f"mode=1777{size}")


def _unshare(what: int) -> None:
    if libc.unshare(what):
        raise failure("namespaces")


def _set(fd: int, kind: str, flag: int) -> None:
    if libc.setns(fd, flag):
        raise failure(kind)
