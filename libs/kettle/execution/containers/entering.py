"""
A program beside the one that runs in a container: in its namespaces, with no more rights than the job has.

No runtime is asked: what makes the container are the namespaces of the job's process. A fork of ours joins them and
becomes the program, because the job's account may not be able to read our interpreter, and the image has none.
"""

import ctypes
import fcntl
import os
from contextlib import ExitStack
from typing import Final

from kettle.execution.attempt import Account
from kettle.execution.beside import Birth, bear, become_account
from kettle.execution.cgroups import Cgroup
from kettle.execution.process import Program

_USER: Final = 0x10000000
_OTHERS: Final = {"ipc": 0x08000000, "uts": 0x04000000, "net": 0x40000000, "mnt": 0x00020000}
_GET_USERNS: Final = 0xB701
"""ioctl_ns(2): the user namespace that owns another namespace."""
_BOUNDING_DROP: Final = 24
_NO_NEW_PRIVILEGES: Final = 38
_LAST_CAPABILITY: Final = 63

_libc: Final = ctypes.CDLL(None, use_errno=True)


def enter(pid: int, cgroup: Cgroup | None, program: Program) -> Birth:
    """
    Begin a program, with streams or a terminal of its own, in the container of a process. Raises OSError.
    """

    def join() -> None:
        _join(pid, program.account)
        _lock()

    return bear(program, cgroup, join)


def _join(pid: int, account: Account | None) -> None:
    """
    Become a process of the container, and the job's account. Raises OSError.

    One that has a user namespace of its own is the account's: its account alone, and not we, has rights in it.
    """
    with ExitStack() as closing:
        places = {kind: _opened(f"/proc/{pid}/ns/{kind}", closing) for kind in ("user", *_OTHERS)}
        ours = {kind: _identity(_opened(f"/proc/self/ns/{kind}", closing)) for kind in places}
        owner = fcntl.ioctl(places["mnt"], _GET_USERNS)
        closing.callback(os.close, owner)
        foreign = _identity(owner) != ours["user"]
        if foreign:
            become_account(account)
            _set(owner, _USER)
        for kind, flag in _OTHERS.items():
            if _identity(places[kind]) != ours[kind]:
                _set(places[kind], flag)
        if _identity(places["user"]) not in {_identity(owner), ours["user"]}:
            _set(places["user"], _USER)
        _drop_capabilities()
        if not foreign:
            become_account(account)


def _drop_capabilities() -> None:
    """
    What is executed from here on has none, not even those that entering its container has given it.
    """
    for capability in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_BOUNDING_DROP, capability, 0, 0, 0)  # fails for those that the kernel does not know


def _lock() -> None:
    """
    What is executed from here on gets no rights beyond those of the account.
    """
    if _libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")


def _opened(path: str, closing: ExitStack) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    closing.callback(os.close, fd)
    return fd


def _identity(fd: int) -> tuple[int, int]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino


def _set(fd: int, kind: int) -> None:
    if _libc.setns(fd, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
