"""
Memory that is freed and used again at once: pieces of a stream, a quarter of a MiB each.

The C library of Linux gives the top of its heap back to the kernel when a few of them are freed, and gets it again, page by page and
filled with zeros, for the next ones.  For who passes bytes on that is more work than all its copies.
"""

import ctypes
from typing import Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Of `mallopt`."""
KEPT: Final = 16 << 20
"""Bytes at the end of the heap that are kept."""
_LARGEST: Final = 4 << 20
"""Bytes of one allocation that is taken from the heap."""


def keep_freed_memory() -> bool:
    """
    Have this process keep `KEPT` bytes that it has freed, from now on; whether its C library can be told (musl has nothing of the kind).
    """
    try:
        told = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    return bool(told(_TRIM_THRESHOLD, KEPT) and told(_MMAP_THRESHOLD, _LARGEST))
