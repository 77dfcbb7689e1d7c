"""
What a path of a job leads to, step by step on open directories, and never through what the kernel makes up.

A process's own memory, environment and open files are regular files to look at, below /proc; and the links there lead past
every other check. So no step is made onto such a file system, whatever name it is mounted under, nor into /dev.
"""

import ctypes
import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS: Final = 40
_SYSTEM: Final = ("/proc", "/sys", "/dev")
_MADE_UP: Final = frozenset(
    {
        0x9FA0,  # proc
        0x9FA2,  # usbdevfs
        0x1CD1,  # devpts
        0x1373,  # devfs
        0x27E0EB,  # cgroup
        0x7655821,  # resctrl
        0x09041934,  # anonymous inodes
        0x19800202,  # mqueue
        0x42494E4D,  # binfmt_misc
        0x43415D53,  # smackfs
        0x50495045,  # pipes
        0x534F434B,  # sockets
        0x5A3C69F0,  # apparmorfs
        0x62656570,  # configfs
        0x62656572,  # sysfs
        0x63677270,  # cgroup2
        0x64626720,  # debugfs
        0x6165676C,  # pstore
        0x65735543,  # fusectl
        0x6E736673,  # namespaces
        0x73636673,  # securityfs
        0x74726163,  # tracefs
        0xCAFE4A11,  # bpf
        0xDE5E81E4,  # efivarfs
        0xF97CFF8C,  # selinuxfs
    }
)
"""Kinds of file systems (linux/magic.h) that hold no files of anybody's."""

_libc: Final = ctypes.CDLL(None, use_errno=True)
_STATFS_BYTES: Final = 512


class SystemFileError(PermissionError):
    """A job names a file that the system makes up."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "it belongs to the system")


@contextmanager
def followed(path: str) -> Generator[int]:
    """
    What an absolute path leads to, all links followed, as a descriptor that names it and nothing more; raises OSError.
    """
    here, links, waiting = _root(), 0, _steps(path)
    try:
        while waiting:
            with step(here, waiting.pop()) as there:
                if not stat.S_ISLNK(os.fstat(there).st_mode):
                    os.dup2(there, here, inheritable=False)
                    continue
                target = os.readlink("", dir_fd=there)
            if (links := links + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                root = _root()
                os.close(here)
                here = root
            waiting += _steps(target)
        yield here
    finally:
        os.close(here)


@contextmanager
def step(directory: int, name: str) -> Generator[int]:
    """What has this name in an open directory, be it a link; raises OSError."""
    try:
        place = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=directory)  # this has it mounted, if need be
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        place = os.open(name, _PLACE, dir_fd=directory)
    try:
        _refuse_system(place)
        yield place
    finally:
        os.close(place)


def real_path(place: int) -> str:
    """Where an open file is, in the kernel's words."""
    return str(Path(f"/proc/self/fd/{place}").readlink())


def _root() -> int:
    return os.open("/", _PLACE | os.O_DIRECTORY)


def _steps(path: str) -> list[str]:
    """The names in a path, the first one last; a slash at the end says that it is a directory."""
    names = [name for name in path.split("/") if name]
    if path.endswith("/"):
        names.append(".")
    return names[::-1]


def _refuse_system(place: int) -> None:
    about = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.fstatfs(place, about):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    kind = ctypes.c_long.from_buffer(about).value & 0xFFFFFFFF
    real = real_path(place)
    if kind in _MADE_UP or real in _SYSTEM or real.startswith(tuple(f"{root}/" for root in _SYSTEM)):
        raise SystemFileError
