"""`file://` URLs: files of the worker itself, with the rights of the job."""

import errno
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from kettle.transfer.plugins.command_line import run

METHODS: Final = ("file",)


def main(arguments: Sequence[str]) -> int:
    """Be the plugin; its exit code."""
    return run(arguments, METHODS, fetch, send, remove=remove)


def fetch(url: str, path: str) -> int:
    """Copy from the worker into the sandbox."""
    return _copy(place(url), Path(path))


def send(url: str, path: str) -> int:
    """Copy out of the sandbox; directories that are missing are made."""
    target = place(url)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Its name is that of all of it or of nothing, also if the machine goes meanwhile.
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}.part")
    try:
        size = _copy(Path(path), draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return size


def remove(url: str) -> None:
    """Remove a file, or a directory if it is empty; what is not there is removed already."""
    target = place(url)
    if not url.endswith("/"):
        target.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        try:
            target.rmdir()
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise


def place(url: str) -> Path:
    """The path that a URL names.  Raises ValueError for one on another machine."""
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise ValueError(f"{parts.netloc} is another machine: a file URL has three slashes, file:///PATH")
    return Path(unquote(parts.path))


def _copy(source: Path, target: Path) -> int:
    if not source.is_file():  # a pipe without a writer would keep us
        source.stat()
        raise ValueError(f"{source} is not a regular file")
    shutil.copyfile(source, target)
    return target.stat().st_size


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
