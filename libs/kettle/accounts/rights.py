"""
Acting with the rights of an account, in one thread and for one act, so that the kernel decides what it may do.

The system keeps rights for each thread.  The C library changes those of all threads of a process at once, so the system
is called directly here.  The effective ids and the groups are the account's; with them the kernel takes all
capabilities away until the act is over.  The real and saved ids stay those of root: they are what decides who may send
signals to this process or look into it, and its owner may not.

There is no check here that could be outrun: whatever is renamed or linked while an act lasts, the account may do it or
it may not.
"""

import ctypes
import errno
import os
import platform
import threading
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

_GENERIC: Final = (147, 149, 159)
_NUMBERS: Final = {
    "x86_64": (117, 119, 116),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
    "loongarch64": _GENERIC,
    "ppc64le": (164, 169, 81),
    "s390x": (208, 210, 206),
}
"""The numbers of setresuid, setresgid and setgroups, by machine."""
_MACHINE: Final = platform.machine()
_UNCHANGED: Final = -1
_FAILED: Final = 70

_libc: Final = ctypes.CDLL(None, use_errno=True)


class Rights(msgspec.Struct, frozen=True):
    """What the kernel knows an account by."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    """The groups that it is in besides."""


class _Thread(threading.local):
    """As whom a thread acts; None: as this process."""

    rights: Rights | None = None


_thread: Final = _Thread()
_OURS: Final = Rights(os.geteuid(), os.getegid(), tuple(os.getgroups()))


def can_become_others() -> bool:
    """Whether this process may act with other rights than its own."""
    return os.geteuid() == 0 and _MACHINE in _NUMBERS


def act_as(rights: Rights | None, work: Callable[[], T]) -> T:
    """
    The result of some work that is done with the rights of an account; None: with those of this process.

    The work neither awaits anything nor starts threads or processes: those would keep the rights.  It may itself call
    this.  Raises what the work raises, or OSError if the rights cannot be taken.
    """
    before = _thread.rights
    if rights == before:
        return work()
    try:
        _take(rights)
        return work()
    finally:
        _restore(before)


def _restore(before: Rights | None) -> None:
    try:
        _take(before)
    except OSError:
        os._exit(_FAILED)  # nobody can say whose rights this thread would go on with


def _take(rights: Rights | None) -> None:
    """Raises OSError; then the thread has some of the rights, or all of its former ones."""
    before = _thread.rights
    numbers = _NUMBERS.get(_MACHINE)
    if numbers is None:
        raise OSError(errno.ENOSYS, f"on {_MACHINE} Kettle cannot act as another account")
    set_uid, set_gid, set_groups = numbers
    if before is not None:  # first root's user id, which allows the rest
        _call(set_uid, _UNCHANGED, _OURS.uid, _UNCHANGED)
    wanted = _OURS if rights is None else rights
    _set_groups(set_groups, wanted.groups)
    _call(set_gid, _UNCHANGED, wanted.gid, _UNCHANGED)
    _call(set_uid, _UNCHANGED, wanted.uid, _UNCHANGED)
    _thread.rights = rights


def _set_groups(number: int, groups: tuple[int, ...]) -> None:
    _call(number, len(groups), (ctypes.c_uint32 * len(groups))(*groups))


def _call(number: int, *arguments: "int | ctypes.Array[ctypes.c_uint32]") -> None:
    given = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if _libc.syscall(ctypes.c_long(number), *given):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
