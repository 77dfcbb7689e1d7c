"""What a task has printed into a file of its own, which comes behind what the job has printed."""

import os
import stat
from typing import Final

_PIECE: Final = 1 << 20
_BLOCK: Final = 512
"""Bytes of what the kernel counts as a block."""
_DENSEST: Final = 1000
"""So many bytes a file system packs into one at most: what has more is mostly holes."""


def append_printed(source: str, sink: str, room: int) -> None:
    """
    Copy a file behind another one, as much as is in it now; of one that is mostly holes, at most `room` bytes.  The task may have put
    anything in its place: what is no file has nothing, and one that is the other one, too, does not grow without end.  It is called
    with the rights of the job.

    Raises OSError: the other one cannot be written.
    """
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        taken = os.open(source, os.O_RDONLY | os.O_NONBLOCK | flags)
    except OSError:
        return
    about = os.fstat(taken)
    if not stat.S_ISREG(about.st_mode):
        os.close(taken)
        return
    left = min(about.st_size, max(room, about.st_blocks * _BLOCK * _DENSEST))
    with open(taken, "rb") as printed:  # noqa: PTH123 - a descriptor
        added = os.open(sink, os.O_WRONLY | os.O_APPEND | os.O_CREAT | flags, 0o644)
        with open(added, "ab") as stdout:  # noqa: PTH123 - as above
            while left and (piece := printed.read(min(left, _PIECE))):
                stdout.write(piece)
                left -= len(piece)
