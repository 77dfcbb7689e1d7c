"""
A program beside the one that runs in a container: in its namespaces, with no more rights than the job has.

No runtime is asked: what makes the container are the namespaces of the job's process. A fork of ours joins them and
becomes the program, because the job's account may not be able to read our interpreter, and the image has none.
"""

import ctypes
import errno
import fcntl
import os
import select
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import Account
from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import SpawnedProgram, become_account, spawn
from kettle.execution.system.cgroup import Cgroup

USER: Final = 0x10000000
NET: Final = 0x40000000
_OTHERS: Final = {"ipc": 0x08000000, "uts": 0x04000000, "net": NET, "mnt": 0x00020000}
GET_USERNS: Final = 0xB701
"""ioctl_ns(2): the user namespace that owns another namespace."""
_BOUNDING_DROP: Final = 24
_NO_NEW_PRIVILEGES: Final = 38
_LAST_CAPABILITY: Final = 63

_MOUNT_SETATTR: Final = 442
"""Of Linux 5.12, by this number on every machine; the C library may not know it."""
_NODEV: Final = 0x4
_RECURSIVE: Final = 0x8000
_NOFOLLOW: Final = 0x100
_ATTRIBUTES: Final = struct.Struct("=QQQQ")
"""struct mount_attr: to be set, to be cleared, propagation, user namespace."""
_DEVICES: Final = (
    "/dev", "/dev/pts", *(f"/dev/{name}" for name in ("console", "full", "null", "ptmx", "random", "tty", "urandom", "zero")),
)  # fmt: skip
"""What an engine mounts there has the devices that everybody may use; an image has no mount there."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


class HolderIdentity(msgspec.Struct, frozen=True):
    """
    Facts that distinguish the holder of an engine's container from another process with its pid, and what the job may
    use there.
    """

    program: tuple[int, int]
    """Device and inode of what it executes."""
    devices: Sequence[str] = ()
    """Where device files are mounted that the machine's owner wants the job to have."""
    bound: Sequence[int] = ()
    """
    The file systems of which directories are mounted there: a link of the image may have one mounted on `/dev`.
    """


def enter(
    pid: int, cgroup: Cgroup | None, program: Program, held: HolderIdentity | None = None
) -> SpawnedProgram:
    """
    Begin a program, with streams or a terminal of its own, in the container of a process. Raises OSError.

    With `held` the process is the holder of a container that an engine has just made: no device of its image works
    from here on.
    """

    def join() -> None:
        _join(pid, program.account, held)
        _lock()

    return spawn(program, cgroup, join)


def identified(pid: int, held: HolderIdentity, closing: ExitStack) -> int:
    """
    A pidfd of a holder: as long as it lives (see `lives`), everything below `/proc/PID` is its own.

    Raises:
        OSError: the process is another one, or has ended.
    """
    fd = os.pidfd_open(pid)
    closing.callback(os.close, fd)
    about = os.stat(f"/proc/{pid}/exe")  # noqa: PTH116 - what it executes, not what the link is called
    if (about.st_dev, about.st_ino) != held.program:
        raise ProcessLookupError(errno.ESRCH, f"process {pid} does not hold the container")
    return fd


def lives(pidfd: int) -> bool:
    """Whether a process has not ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return not poll.poll(0)


def _join(pid: int, account: Account | None, held: HolderIdentity | None) -> None:
    """
    Become a process of the container, and the job's account. Raises OSError.

    One that has a user namespace of its own is the account's: its account alone, and not we, has rights in it.
    """
    with ExitStack() as closing:
        pidfd = identified(pid, held, closing) if held is not None else -1
        places = {kind: open_namespace(f"/proc/{pid}/ns/{kind}", closing) for kind in ("user", *_OTHERS)}
        ours = {kind: identity(open_namespace(f"/proc/self/ns/{kind}", closing)) for kind in places}
        if pidfd >= 0 and not lives(pidfd):
            raise ProcessLookupError(errno.ESRCH, "the holder of the container has ended")
        if identity(places["mnt"]) == ours["mnt"]:
            raise ProcessLookupError(errno.ESRCH, "the process is in no container")
        owner = fcntl.ioctl(places["mnt"], GET_USERNS)
        closing.callback(os.close, owner)
        foreign = identity(owner) != ours["user"]
        if foreign:
            become_account(account)
            join_namespace(owner, USER)
        for kind, flag in _OTHERS.items():
            if identity(places[kind]) != ours[kind]:
                join_namespace(places[kind], flag)
        if held is not None:
            _close_devices(held)
        if identity(places["user"]) not in {identity(owner), ours["user"]}:
            join_namespace(places["user"], USER)
        _drop_capabilities()
        if not foreign:
            become_account(account)


def _close_devices(held: HolderIdentity) -> None:
    """
    No device file of the image, or of what is mounted in it, can be opened: no filter of a control group is between the
    job and the disk that an image's author has given a name to.
    """
    _set_attributes("/", _RECURSIVE, (_NODEV, 0))
    for place in (*_DEVICES, *held.devices):
        try:
            if os.lstat(place).st_dev not in held.bound:
                _set_attributes(place, _NOFOLLOW, (0, _NODEV))
        except OSError as error:
            if error.errno not in {errno.EINVAL, errno.ENOENT, errno.ENOTDIR}:  # nothing is mounted there
                raise


def _set_attributes(path: str, how: int, change: tuple[int, int]) -> None:
    """Of the mount at a path: what is set and what is cleared. Raises OSError."""
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.pack(*change, 0, 0), _ATTRIBUTES.size)
    # Without a directory (-1): the path is absolute.
    if _libc.syscall(
        _MOUNT_SETATTR, -1, os.fsencode(path), how, attributes, ctypes.c_size_t(_ATTRIBUTES.size)
    ):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def _drop_capabilities() -> None:
    """What is executed from here on has none, not even those that entering its container has given it."""
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0)  # fails for those that the kernel does not know


def _lock() -> None:
    """What is executed from here on gets no rights beyond those of the account."""
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")


def open_namespace(path: str, closing: ExitStack) -> int:
    """A descriptor of a namespace, until `closing`. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    closing.callback(os.close, fd)
    return fd


def identity(fd: int) -> tuple[int, int]:
    """What no other namespace has."""
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def join_namespace(fd: int, kind: int) -> None:
    """Be in a namespace of this kind from here on. Raises OSError."""
    if _libc.setns(fd, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
