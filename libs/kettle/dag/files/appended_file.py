"""A log that one process appends to, and that is as long as it is known to be."""

import os
from pathlib import Path


class AppendedFile:
    """
    Opened to go on at its end; with a `size`, bytes behind it are cut off: they were written, but nobody knows of it.

    Raises OSError.
    """

    def __init__(self, path: Path, size: int | None) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        there = os.fstat(self._fd).st_size
        if size is not None and there > size:
            os.ftruncate(self._fd, size)
            there = size
        self.size = there

    def append(self, text: str) -> None:
        """Add to its end; a disk that takes only a part of it raises OSError."""
        data = memoryview(text.encode())
        while data:
            taken = os.pwrite(self._fd, data, self.size)
            self.size += taken
            data = data[taken:]

    def close(self) -> None:
        """Nothing more comes."""
        os.close(self._fd)


def replace(path: Path, text: str) -> None:
    """
    Write a whole file so that readers see the old or the new one.  Raises OSError.

    A link that somebody has left beside it, in a directory where others may write, is not followed.
    """
    beside = path.with_name(f"{path.name}.tmp")
    beside.unlink(missing_ok=True)
    with beside.open("x") as file:
        file.write(text)
    beside.replace(path)
