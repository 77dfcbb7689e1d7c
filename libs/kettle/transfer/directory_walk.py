"""What lies below a path that a job names."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from kettle.transfer.exclusions import Exclusions
from kettle.transfer.submit_side_paths import TransferPath

_NOTHING: Final = Exclusions()


def walk(
    wanted: TransferPath,
    but: Exclusions = _NOTHING,
    listed: Callable[[Path], AbstractContextManager[Iterator[os.DirEntry[str]]]] = os.scandir,
    *,
    empty: bool = False,
) -> Iterator[tuple[Path, str | None]]:
    """
    Paths and their names in the sandbox; no name: nothing to transfer, a directory or a link to one.  What `but` covers
    is left out, if it is below a directory.  `listed` says what is in one.  With `empty` also directories of which nothing
    is left, by names that end with a slash.

    Lists one directory at a time and nothing ahead, so that who counts can stop it. Raises OSError or ValueError.
    """
    root = Path(wanted.path)
    if not stat.S_ISDIR(root.stat().st_mode):
        yield root, wanted.name
        return
    waiting = [(root, "" if wanted.contents else f"{wanted.name}/")]
    while waiting:
        directory, prefix = waiting.pop()
        bare = empty and bool(prefix)
        with listed(directory) as entries:
            for entry in entries:
                path = directory / entry.name
                branch = entry.is_dir(follow_symlinks=False)
                if but.covers(f"{prefix}{entry.name}{'/' if branch else ''}"):
                    continue
                bare = False
                if branch:
                    waiting.append((path, f"{prefix}{entry.name}/"))
                    yield path, None
                else:
                    yield path, None if entry.is_dir() else prefix + entry.name
        if bare:
            yield directory, prefix
