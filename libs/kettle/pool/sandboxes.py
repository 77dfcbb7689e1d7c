"""
Removing what jobs left in the pool's sandboxes, however they left it.
"""

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path


def sweep(execute: Path) -> list[Path]:
    """
    Remove everything in the directory; what could not be removed.
    """
    try:
        found = sorted(execute.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in found if not remove(path)]


def remove(path: Path) -> bool:
    """
    Remove a tree even if a job has taken our permissions on parts of it; whether it is gone.
    """
    if path.is_symlink() or not path.is_dir():
        with suppress(OSError):
            path.unlink()
        return not os.path.lexists(path)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        _reopen(path)
        shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def _reopen(path: Path) -> None:
    # Top-down: a directory has to be open before what is in it can be seen.  Links are not followed.
    with suppress(OSError):
        path.chmod(stat.S_IRWXU)
    for directory, directories, _files in os.walk(path):
        for name in directories:
            each = Path(directory, name)
            if not each.is_symlink():
                with suppress(OSError):
                    each.chmod(stat.S_IRWXU)
