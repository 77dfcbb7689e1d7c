"""
The directory of a job that has ended, kept for the next job of this process.

To make a directory and to remove it, a file system looks for a place, and gives back blocks: that costs more than to empty one and to
give it another name, and with some disks the process waits for it.
"""

import os
import posixpath
import stat
from contextlib import suppress
from typing import Final

from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.sandbox.private_directories import spare

_LARGE: Final = 64 * 1024
"""Bytes of a directory that has had very many files: it does not shrink, and looking through it takes long."""
_OF_SYSTEM: Final = "security."
"""Attributes of files that a system gives to all; others were set by a job, as access lists are."""


class SpareSandbox:
    """
    At most one directory, which the next job of the same person gets: who has it open from a job that has ended would see
    into it.
    """

    def __init__(self) -> None:
        self._path = ""
        self._owner = ("", "")

    def keep(self, sandbox: Sandbox, owner: tuple[str, str]) -> bool:
        """
        Keep the sandbox of a job that has ended, emptied; false: it is as it was, or some of its files are gone, and it is to be
        removed.

        `owner`: an access point, and whom it names.  No process of the job is left.
        """
        self.drop()
        path = spare(posixpath.dirname(sandbox.path), "sandbox")
        try:
            sandbox.close_to_others()
            if not _is_plain(sandbox.path) or not _emptied(sandbox.path):
                return False
            os.rename(sandbox.path, path)  # noqa: PTH104 - hot
        except OSError:
            return False
        self._path, self._owner = path, owner
        return True

    def give(self, sandbox: Sandbox, owner: tuple[str, str]) -> bool:
        """Have the kept directory be the sandbox of a job that begins; false: there is none for it."""
        path, self._path = self._path, ""
        if not path or owner != self._owner or posixpath.dirname(path) != posixpath.dirname(sandbox.path):
            self._path = path
            return False
        try:
            os.rename(path, sandbox.path)  # noqa: PTH104 - as above
        except (
            OSError
        ):  # a startd that began meanwhile has removed it, or a former life left something in its place
            _remove(path)
            return False
        sandbox.own()
        return True

    def drop(self) -> None:
        """Keep nothing."""
        path, self._path = self._path, ""
        if path:
            _remove(path)


def _is_plain(path: str) -> bool:
    """Whether a directory is as one that is made; its modes are made so."""
    about = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - as above
    if not stat.S_ISDIR(about.st_mode) or about.st_size > _LARGE:
        return False
    if stat.S_IMODE(about.st_mode) != 0o700:
        os.chmod(path, 0o700)  # noqa: PTH101 - as above
    return all(name.startswith(_OF_SYSTEM) for name in os.listxattr(path, follow_symlinks=False))


def _emptied(path: str) -> bool:
    """Remove the files of a directory; whether it is empty then, as it is if it has no other directories."""
    with os.scandir(path) as entries:
        found = [(entry.path, entry.is_dir(follow_symlinks=False)) for entry in entries]
    if any(directory for _, directory in found):
        return False
    for file, _ in found:
        os.unlink(file)  # noqa: PTH108 - as above
    return True


def _remove(path: str) -> None:
    with suppress(OSError):
        os.rmdir(path)  # noqa: PTH106 - as above
