"""Opening a file of a sandbox while its job lives and may exchange anything in it at any moment."""

import os
import stat
from typing import Final

_PLACE: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_beneath(root: str, name: str) -> int:
    """
    A descriptor of a regular file below a directory, for reading.

    Step by step, and no step follows a link: not out of the directory, and not inside it either. What is opened was
    looked at before, so no pipe or device is touched. `root` itself is trusted.

    Raises:
        PermissionError: the name leads out of the directory, or a part of it is a link.
        OSError: there is no such file, or it is no regular file.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        raise PermissionError("the path leaves the sandbox, or is not written plainly")
    place = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            deeper = os.open(part, _PLACE, dir_fd=place)
            os.close(place)
            place = deeper
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise PermissionError(f"'{part}' is a link, and links are not followed")
        return open_place(place)
    finally:
        os.close(place)


def open_place(place: int) -> int:
    """For reading, the regular file that an O_PATH descriptor stands for. Raises OSError."""
    if not stat.S_ISREG(os.fstat(place).st_mode):
        raise OSError("it is not a regular file")
    return os.open(f"/proc/self/fd/{place}", _READ)
