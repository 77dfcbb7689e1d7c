"""
What is stored together: messages of one or several shards, and with them how far each shard has been published.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec

from kettle.bus.ports import Post
from kettle_wire.cloud_events import escaped, unescaped

MESSAGES: Final = 1_000
"""The most messages of one batch, as the server has it."""
BYTES: Final = 4 << 20


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """How far a shard has been published: the last event by its position, and its frame."""

    frame: int
    position: int
    epoch: int


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Mark]).decode


def note_of(marks: Mapping[str, Mark]) -> str:
    """Marks by shard as a note, which is plain ASCII."""
    return _encode({escaped(shard): mark for shard, mark in marks.items()}).decode()


def marks_of(note: str) -> dict[str, Mark]:
    """Inverse of `note_of`; nothing for no note. Raises ValueError for anything else."""
    return {unescaped(shard): mark for shard, mark in _decode(note).items()} if note else {}


class Piece(msgspec.Struct, frozen=True):
    """Messages of one shard in order, and where it stands after them."""

    shard: str
    mark: Mark
    posts: Sequence[Post]
    at: int = 0
    """When the frame was recorded, microseconds."""

    @property
    def size(self) -> int:
        """Bytes of the messages' data."""
        return sum(len(post.data) for post in self.posts)


def pieces(
    shard: str, epoch: int, frame: int, posts: Sequence[tuple[int, Post]], *, at: int = 0
) -> list[Piece]:
    """
    The messages of one frame, each with its position, in parts that fit into a batch.

    What is at one position, one event of many jobs, stays in one part: marks are positions.
    """
    parts: list[Piece] = []
    part: list[Post] = []
    bytes_of_part = last = 0
    for position, group in groupby(posts, key=itemgetter(0)):
        together = [post for _, post in group]
        size = sum(len(post.data) for post in together)
        if part and (len(part) + len(together) > MESSAGES or bytes_of_part + size > BYTES):
            parts.append(Piece(shard, Mark(frame, last, epoch), part, at))
            part, bytes_of_part = [], 0
        part.extend(together)
        bytes_of_part += size
        last = position
    parts.append(Piece(shard, Mark(frame, last, epoch), part, at))
    return parts


class Batch:
    """Collects pieces that go together."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.marks: dict[str, Mark] = {}
        self.times: list[int] = []
        """When the frames were recorded, microseconds."""
        self._bytes = 0

    def has_room(self, piece: Piece) -> bool:
        """Whether the piece still fits; the first one always does."""
        return not self.posts or (
            len(self.posts) + len(piece.posts) <= MESSAGES and self._bytes + piece.size <= BYTES
        )

    def add(self, piece: Piece) -> None:
        """Take a piece."""
        self.posts += piece.posts
        self.times.append(piece.at)
        self._bytes += piece.size
        self.marks[piece.shard] = piece.mark
