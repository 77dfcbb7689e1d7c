"""
What a path of a job leads to, step by step on open directories, and never through what the kernel makes up.

A process's own memory, environment and open files are regular files to look at, below /proc; and the links there lead past
every other check. So no step is made onto such a file system, whatever name it is mounted under, nor into /dev but for its shared memory.
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
_DEVICES: Final = "/dev"
_SYSTEM: Final = ("/proc", "/sys", _DEVICES)
_SHARED_MEMORY: Final = Path(_DEVICES, "shm")
"""It holds files of anybody's, unlike everything beside it."""
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
def followed(path: str, base: int | None = None) -> Generator[int]:
    """
    What an absolute path leads to, all links followed, as a descriptor that names it and nothing more; raises OSError.

    With a `base`, an open directory, the path begins there; links that are absolute begin at the root all the same.
    """
    here, links, waiting = _root() if base is None else os.dup(base), 0, _steps(path)
    device = -1 if base is None else os.fstat(base).st_dev
    try:
        while waiting:
            with _opened(here, waiting.pop()) as there:
                about = os.fstat(there)
                if not stat.S_ISLNK(about.st_mode):
                    if (
                        about.st_dev != device
                    ):  # below a directory of one file system all else is of the same kind
                        on_the_way = waiting[-1:] == [_SHARED_MEMORY.name] and real_path(there) == _DEVICES
                        if not on_the_way:
                            refuse_system(there)
                        device = -1 if on_the_way else about.st_dev
                    os.dup2(there, here, inheritable=False)
                    continue
                target = os.readlink("", dir_fd=there)
            if (links := links + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                root = _root()
                os.close(here)
                here, device = root, -1
            waiting += _steps(target)
        yield here
    finally:
        os.close(here)


@contextmanager
def step(directory: int, name: str) -> Generator[int]:
    """What has this name in an open directory, be it a link; raises OSError."""
    with _opened(directory, name) as place:
        refuse_system(place)
        yield place


@contextmanager
def _opened(directory: int, name: str) -> Generator[int]:
    try:
        place = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=directory)  # this has it mounted, if need be
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        place = os.open(name, _PLACE, dir_fd=directory)
    try:
        yield place
    finally:
        os.close(place)


def real_path(place: int) -> str:
    """Where an open file is, in the kernel's words."""
    return os.readlink(f"/proc/self/fd/{place}")  # noqa: PTH115 - a path object costs more than the call


def _root() -> int:
    return os.open("/", _PLACE | os.O_DIRECTORY)


def _steps(path: str) -> list[str]:
    """The names in a path, the first one last; a slash at the end says that it is a directory."""
    names = [name for name in path.split("/") if name]
    if path.endswith("/"):
        names.append(".")
    return names[::-1]


def refuse_system(place: int) -> None:
    """
    Raises SystemFileError for an open file that the kernel makes up, or that lies where only such files do.
    """
    about = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.fstatfs(place, about):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    kind = ctypes.c_long.from_buffer(about).value & 0xFFFFFFFF
    real = real_path(place)
    if kind in _MADE_UP or (
        f"{real}/".startswith(tuple(f"{root}/" for root in _SYSTEM))
        and not f"{real}/".startswith(f"{_SHARED_MEMORY}/")
    ):
        raise SystemFileError
