"""
Where a run takes place: a directory with the pool, the people's work and the evidence, on small disks where that is possible.
"""

import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from kettle.testing.chaos import disk
from kettle.testing.chaos.clock import library, tidied


class Ground(msgspec.Struct, frozen=True):
    """Where a run takes place."""

    directory: Path
    home: Path
    execute: Path
    disks: dict[str, Path]
    unavailable: dict[str, str]


@asynccontextmanager
async def prepared(disk_mib: int) -> AsyncGenerator[Ground]:
    """Make the directory; it is removed at the end, with everything in it."""
    # Below a directory that lets strangers through: root's jobs run under accounts of their own.
    directory = Path(tempfile.mkdtemp(prefix="kettle-chaos-"))
    directory.chmod(0o711)
    home, execute = directory / "pool", directory / "execute"
    disks: dict[str, Path] = {}
    unavailable = {} if library() else {"clock": "the package libfaketime is not installed"}
    async with AsyncExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        stack.enter_context(tidied())
        if why := disk.why_not():
            unavailable["disk_full"] = why
        else:
            disks["pool"] = stack.enter_context(disk.small_disk(home, mib=disk_mib, mode=0o700))
            disks["execute"] = stack.enter_context(disk.small_disk(execute, mib=256, mode=0o711))
        yield Ground(directory, home, execute, disks, unavailable)
