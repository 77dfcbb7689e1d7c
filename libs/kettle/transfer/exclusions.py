"""
`TransferExclude`: which files are not moved though the directory in which they lie is, by patterns as in .gitignore.

    *.tmp       every such file or directory, at any depth
    build/      every such directory
    plots/*.ps  such files in this directory; a pattern with a slash begins at the top
    **/old/*    two stars stand for any directories

There is no negation.  Pure.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from kettle.transfer.file_lists import ManifestError, items

ATTRIBUTE: Final = "TransferExclude"
_ANY: Final = "**"


class Pattern(msgspec.Struct, frozen=True):
    """One of them: the names on the way, and whether the last is that of a directory."""

    names: Sequence[str]
    directory: bool

    def covers(self, parts: Sequence[str], *, directory: bool) -> bool:
        """Whether it is about what has this path, or about a directory above it."""
        ends = self._ends(parts)
        return any(end < len(parts) or directory or not self.directory for end in ends)

    def _ends(self, parts: Sequence[str]) -> set[int]:
        """
        How many parts of a path the whole pattern can stand for; one part after the other, so that no pattern takes long.
        """
        ends = {0}
        for left, name in enumerate(self.names, start=1 - len(self.names)):
            if name == _ANY:  # at the end of a pattern it stands for something
                ends = set(range(min(ends) + (not left), len(parts) + 1)) if ends else ends
            else:
                ends = {end + 1 for end in ends if end < len(parts) and fnmatchcase(parts[end], name)}
        return ends


class Exclusions(msgspec.Struct, frozen=True):
    """The patterns of a job."""

    patterns: Sequence[Pattern] = ()

    def covers(self, name: str) -> bool:
        """
        Whether a file, by its name on the other side, is not moved; a directory's name ends with a slash.
        """
        parts = name.rstrip("/").split("/") if self.patterns else []
        return any(pattern.covers(parts, directory=name.endswith("/")) for pattern in self.patterns)


def exclusions(text: str) -> Exclusions:
    """Read a list of patterns, separated by commas.  Raises ManifestError."""
    return Exclusions([_read(item) for item in items(text)])


def _read(item: str) -> Pattern:
    if item.startswith("!"):
        raise ManifestError(f"{item!r}: what is excluded is not taken back; leave the other pattern out")
    names = item.strip("/").split("/")
    if any(name in {"", ".", ".."} for name in names):
        raise ManifestError(f"{item!r} is no pattern of names below a directory")
    if "/" not in item.rstrip("/"):
        names = [_ANY, *names]
    return Pattern(names, item.endswith("/"))
