"""Whether a process holds the lock of a file: it does from its start until it ends, however it ends."""

import fcntl
import os
from pathlib import Path


def is_held(lock: str | Path) -> bool:
    """Whether somebody holds it.  Raises OSError: there is no such file, or we may not read it."""
    fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
