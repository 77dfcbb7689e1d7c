"""What a program has written to a terminal of a test."""

import os
from contextlib import suppress


def all_said(ours: int) -> bytes:
    """
    Everything, when nobody has the other end any more; ours is closed.

    The kernel hands over what was written bit by bit, so one look may see a part of it.
    """
    said = b""
    with os.fdopen(ours, "rb", buffering=0) as terminal, suppress(OSError):  # EIO: that was all
        while piece := terminal.read(65536):
            said += piece
    return said
