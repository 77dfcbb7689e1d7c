"""
Recordings: what a log held, as text that no later version writes again.

A recording is a directory with one file for each shard, `<shard>.jsonl`: a frame a line, as the JSON of the array that
a frame is on the bus, bytes in base64.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from kettle_wire.frames import Frame

HERE: Final = Path(__file__).parent
_decode: Final = msgspec.json.Decoder(Frame).decode


def versions() -> list[Path]:
    """The recordings that are kept, oldest first: one for each version that wrote something new."""
    found = [path for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit()]
    return sorted(found, key=lambda path: [int(part) for part in path.name.split(".")])


def read(directory: Path) -> dict[str, list[Frame]]:
    """The frames of a recording, by shard."""
    return {
        path.stem: [_decode(line) for line in path.read_bytes().splitlines()]
        for path in sorted(directory.glob("*.jsonl"))
    }


def write(directory: Path, shards: Mapping[str, Iterable[Frame]]) -> None:
    """Inverse of `read`."""
    directory.mkdir(parents=True, exist_ok=True)
    for shard, frames in shards.items():
        (directory / f"{shard}.jsonl").write_bytes(b"".join(msgspec.json.encode(f) + b"\n" for f in frames))
