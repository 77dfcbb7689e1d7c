"""The files with tokens, one a line; lines that are empty or begin with # are none."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kettle.auth.private_files import private_directory, write_private

_EXCLUDED: Final = re.compile(
    r"\..*|#.*|.*(\.pl|\.py|\.sh|~|\.rpmsave|\.rpmnew|\.dpkg-old|\.dpkg-dist|\.cfsaved)"
)
"""Names that editors and package managers leave behind: `LOCAL_CONFIG_DIR_EXCLUDE_REGEXP` of HTCondor."""
_LONGEST: Final = 1 << 20


class TokenLine(NamedTuple):
    """One line of a file."""

    file: Path
    text: str


def files(directory: Path) -> list[Path]:
    """The files of a directory that may have tokens, in the order in which they are tried. Raises OSError."""
    found = (Path(entry.path) for entry in os.scandir(directory) if not entry.is_dir())
    return sorted(path for path in found if not _EXCLUDED.fullmatch(path.name))


def lines(file: Path) -> Iterator[TokenLine]:
    """The tokens of a file. Raises OSError."""
    with file.open("rb") as opened:
        data = opened.read(_LONGEST)
    for line in data.decode("utf-8", "replace").splitlines():
        text = line.strip()
        if text and not text.startswith("#"):
            yield TokenLine(file, text)


def write(file: Path, token: str) -> None:
    """
    Put one token into a file that only its owner reads, whole or not at all; its directory is made. Raises OSError.
    """
    private_directory(file.parent)
    if file.is_symlink() or (file.exists() and not file.is_file()):  # /dev/stdout, a pipe: not to be replaced
        file.write_text(f"{token}\n", encoding="utf-8")
    else:
        write_private(file, f"{token}\n")
