"""
Taking away the files of a checkpoint on a disk that its job can write to, and may be writing to at this moment.

From the destination down, directory by directory, by descriptors: no link is followed, whenever it was made.
"""

import errno
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kettle.transfer.checkpoint_manifest import above
from kettle.transfer.plugins.file import place as place_of
from kettle_services.shadow.files.access import FileAccess

_BASE: Final = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_STEP: Final = _BASE | os.O_NOFOLLOW


def remove_files(where: str, names: Sequence[str], places: FileAccess) -> None:
    """
    Remove the files `names` below a `file:` URL, DESTINATION/JOB/NUMBER, and the directories that are empty then.

    What is not there is removed already.  Raises OwnFileError for a destination in the pool's own directory, OSError, or
    ValueError for a URL of another machine.
    """
    root = place_of(where)
    below = [root.parent.name, root.name]
    with suppress(FileNotFoundError):
        base = os.open(root.parent.parent, _BASE)
        try:
            places.refuse_own(Path(f"/proc/self/fd/{base}"))
            for name in names:
                _unlink(base, [*below, *name.split("/")])
            inner = [[*below, *directory.split("/")] for directory in above(names)]
            for directory in [*inner, below, below[:1]]:
                _rmdir(base, directory)
        finally:
            os.close(base)


@contextmanager
def _entered(base: int, parts: Sequence[str]) -> Generator[int]:
    """A directory below another.  Raises OSError, also if a link is on the way."""
    place = os.dup(base)
    try:
        for part in parts:
            deeper = os.open(part, _STEP, dir_fd=place)
            os.close(place)
            place = deeper
        yield place
    except NotADirectoryError as error:
        raise NotADirectoryError(
            error.errno, f"{'/'.join(parts)} is reached by a link, or is a file"
        ) from error
    finally:
        os.close(place)


def _unlink(base: int, parts: Sequence[str]) -> None:
    with suppress(FileNotFoundError), _entered(base, parts[:-1]) as place:
        os.unlink(parts[-1], dir_fd=place)


def _rmdir(base: int, parts: Sequence[str]) -> None:
    with suppress(FileNotFoundError), _entered(base, parts[:-1]) as place:
        try:
            os.rmdir(parts[-1], dir_fd=place)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
