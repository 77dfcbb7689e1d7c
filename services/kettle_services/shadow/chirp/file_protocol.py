"""What the chirp protocol says of files: its flags, its errors, its lines of numbers."""

import errno
import os
from collections.abc import Iterator, Mapping
from typing import Final

from kettle_wire.commands.chirp import Trouble

_MOST_STRIDES: Final = 4096
_TROUBLES: Final[Mapping[int, Trouble]] = {
    errno.EPERM: Trouble.NOT_AUTHORIZED,
    errno.EACCES: Trouble.NOT_AUTHORIZED,
    errno.EROFS: Trouble.NOT_AUTHORIZED,
    errno.ENOENT: Trouble.DOESNT_EXIST,
    errno.EEXIST: Trouble.ALREADY_EXISTS,
    errno.EFBIG: Trouble.TOO_BIG,
    errno.E2BIG: Trouble.TOO_BIG,
    errno.ENAMETOOLONG: Trouble.TOO_BIG,
    errno.ENOSPC: Trouble.NO_SPACE,
    errno.EDQUOT: Trouble.NO_SPACE,
    errno.ENOMEM: Trouble.NO_MEMORY,
    errno.EBADF: Trouble.BAD_FD,
    errno.EINVAL: Trouble.INVALID_REQUEST,
    errno.ELOOP: Trouble.INVALID_REQUEST,
    errno.ENFILE: Trouble.TOO_MANY_OPEN,
    errno.EMFILE: Trouble.TOO_MANY_OPEN,
    errno.EBUSY: Trouble.BUSY,
    errno.ETXTBSY: Trouble.BUSY,
    errno.EAGAIN: Trouble.TRY_AGAIN,
    errno.EINTR: Trouble.TRY_AGAIN,
    errno.EISDIR: Trouble.IS_DIR,
    errno.ENOTDIR: Trouble.NOT_DIR,
    errno.ENOTEMPTY: Trouble.NOT_EMPTY,
    errno.EXDEV: Trouble.CROSS_DEVICE_LINK,
    errno.ETIMEDOUT: Trouble.OFFLINE,
    errno.ESTALE: Trouble.OFFLINE,
}


def trouble(error: OSError) -> Trouble:
    """What the protocol calls it."""
    return _TROUBLES.get(error.errno or 0, Trouble.UNKNOWN)


def flags(letters: str) -> int:
    """
    How a file is opened: r, w, and a force all writes to the end, t truncate, c create, x fail if it is there.
    """
    found = {
        (False, False): os.O_RDONLY,
        (True, False): os.O_RDONLY,
        (False, True): os.O_WRONLY,
        (True, True): os.O_RDWR,
    }["r" in letters, "w" in letters]
    for letter, flag in (("c", os.O_CREAT), ("t", os.O_TRUNC), ("x", os.O_EXCL), ("a", os.O_APPEND)):
        if letter in letters:
            found |= flag
    return found


def strides(offset: int, stride: tuple[int, int], length: int) -> Iterator[tuple[int, int]]:
    """Where the pieces begin and how long they are, `length` in all."""
    size, skip = stride
    if not size or not skip or length // size > _MOST_STRIDES:
        raise OSError(errno.EINVAL, "a stride has a length, and there are not too many")
    while length > 0:
        yield offset, min(size, length)
        offset, length = offset + skip, length - size


def stat_line(about: os.stat_result) -> bytes:
    """What is known about a file, as a line of thirteen numbers."""
    numbers = (
        about.st_dev, about.st_ino, about.st_mode, about.st_nlink, about.st_uid, about.st_gid, about.st_rdev, about.st_size,
        about.st_blksize, about.st_blocks, int(about.st_atime), int(about.st_mtime), int(about.st_ctime),
    )  # fmt: skip
    return " ".join(map(str, numbers)).encode() + b"\n"


def statfs_line(about: os.statvfs_result) -> bytes:
    """What is known about a file system; its kind, which Python does not tell, is 0."""
    numbers = (0, about.f_bsize, about.f_blocks, about.f_bfree, about.f_bavail, about.f_files, about.f_ffree)
    return " ".join(map(str, numbers)).encode() + b"\n"
