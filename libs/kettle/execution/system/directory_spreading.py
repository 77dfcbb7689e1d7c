"""
A hint to the file system: what is made in one directory has nothing to do with each other.

ext2, ext3 and ext4 put a new directory, and the files in it, near its parent.  Sandboxes come and go by the hundred in a
second, and there, side by side, each new inode is looked for among all that were given back lately: without a journal
that search is a quarter of what a short job costs.  The flag `T` of chattr(1), "top of directory hierarchies", spreads
the directories below over the disk.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final

# From <linux/fs.h>: both calls take an int, whatever their numbers say.
_GET_FLAGS: Final = 0x80086601
_SET_FLAGS: Final = 0x40086602
_TOP_OF_HIERARCHIES: Final = 0x00020000


def spread_below(directory: Path) -> None:
    """
    Have directories that are made in `directory` spread over the disk, where the file system can do that.
    """
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # a file system without flags, or without this one
            (flags,) = struct.unpack("i", fcntl.ioctl(fd, _GET_FLAGS, bytes(4)))
            if not flags & _TOP_OF_HIERARCHIES:
                fcntl.ioctl(fd, _SET_FLAGS, struct.pack("i", flags | _TOP_OF_HIERARCHIES))
    finally:
        os.close(fd)
