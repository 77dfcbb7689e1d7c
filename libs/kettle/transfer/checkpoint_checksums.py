"""The sums of a checkpoint's files, made and compared beside the job, with the job's rights."""

import errno
import hashlib
import os
import posixpath
from pathlib import Path
from typing import Final

import msgspec

from kettle.transfer.checkpoint_manifest import CheckpointError, Entry, body, line, read, url
from kettle.transfer.file_lists import shown
from kettle.transfer.hold_codes import Direction
from kettle.transfer.plugin import Move, Order
from kettle_wire.attempts import Ending

_PIECE: Final = 1 << 20


def with_manifest(order: Order) -> Order:
    """
    The order with a manifest of its files as an additional last file, which is written here.  Raises OSError.
    """
    manifest = Path(order.manifest)
    manifest.parent.mkdir(parents=True, exist_ok=True)
    entries = [Entry(os.path.relpath(move.path, order.scratch), _sum(move.path)) for move in order.moves]
    text = "".join(line(entry) for entry in entries)
    own = Entry(manifest.name, hashlib.sha256(text.encode()).hexdigest())
    manifest.unlink(missing_ok=True)
    manifest.write_text(text + line(own), encoding="utf-8")
    last = Move(url(order.place, manifest.name), order.manifest)
    return msgspec.structs.replace(order, moves=[*order.moves, last])


def make_directories(order: Order) -> None:
    """Have the directories of files that are to come.  Raises OSError."""
    for directory in {posixpath.dirname(move.path) for move in order.moves}:
        Path(directory).mkdir(parents=True, exist_ok=True)


def differing(order: Order) -> Ending | None:
    """What came and is not what was saved.  Raises OSError."""
    try:
        _compare(order.scratch, Path(order.manifest).read_text(encoding="utf-8"))
    except CheckpointError as error:
        why = f"the checkpoint at {shown(order.place)} cannot be used: {error}"
        return Direction(upload=False).ending(why, errno.EBADMSG)
    return None


def _compare(scratch: str, text: str) -> None:
    entries, own = read(text)
    if own.sha256 != hashlib.sha256(body(text).encode()).hexdigest():
        raise CheckpointError(f"{own.name} is not what was written")
    for entry in entries:
        if _sum(f"{scratch}/{entry.name}") != entry.sha256:
            raise CheckpointError(f"{entry.name} is not what was saved")


def _sum(path: str) -> str:
    total, piece = hashlib.sha256(), bytearray(_PIECE)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
        while count := file.readinto(piece):
            total.update(memoryview(piece)[:count])
    return total.hexdigest()
