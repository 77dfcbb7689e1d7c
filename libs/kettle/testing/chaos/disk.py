"""A small disk of our own, and a file that takes all of its space."""

import asyncio
import errno
import os
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

_LOOK_S: Final = 0.05
_FILLER: Final = ".filler"
_LEAST: Final = 4096


def why_not() -> str:
    """Why no small disk can be made here; empty if one can."""
    if os.geteuid() != 0:
        return "a small disk is mounted, which takes root"
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False
    )
    return "" if tried.returncode == 0 else "this root may not mount"


@contextmanager
def small_disk(path: Path, *, mib: int, mode: int) -> Generator[Path]:
    """A file system in memory of `mib` MiB at `path`, a new directory; gone with what is on it at the end."""
    path.mkdir(parents=True)
    options = f"size={mib}m,mode={mode:o}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "kettle-chaos", str(path)], check=True)
    try:
        yield path
    finally:
        # Lazily: a process that is being ended may still stand in it.
        subprocess.run(["umount", "--lazy", str(path)], check=True)
        path.rmdir()


@asynccontextmanager
async def full(directory: Path) -> AsyncGenerator[Path]:
    """No space is left in the context, whatever is freed meanwhile; the file that takes it."""
    path = directory / _FILLER
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = _grow(fd, directory, 0)
        growing = asyncio.ensure_future(_keep_full(fd, directory, size))
        try:
            yield path
        finally:
            growing.cancel()
            await asyncio.gather(growing, return_exceptions=True)
    finally:
        os.close(fd)
        path.unlink()


async def _keep_full(fd: int, directory: Path, size: int) -> None:
    while True:
        await asyncio.sleep(_LOOK_S)
        size = _grow(fd, directory, size)


def _grow(fd: int, directory: Path, size: int) -> int:
    """Take what is free, in one piece or in halves of it."""
    piece = _free(directory)
    while piece >= _LEAST:
        try:
            os.posix_fallocate(fd, size, piece)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            piece //= 2
        else:
            size += piece
            piece = _free(directory)
    return size


def _free(directory: Path) -> int:
    found = os.statvfs(directory)
    return found.f_bavail * found.f_frsize
