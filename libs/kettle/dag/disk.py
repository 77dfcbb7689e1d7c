"""DAG files from a disk."""

from collections.abc import Callable
from pathlib import Path


def reader(directory: Path) -> Callable[[str], str]:
    """
    Reads files that are named relative to a directory.

    It raises OSError, and ValueError for what is not UTF-8.
    """

    def read(path: str) -> str:
        data = (directory / path).read_bytes()
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ValueError(
                f"line {line} is not text in UTF-8: {data[error.start : error.end]!r}"
            ) from error

    return read
