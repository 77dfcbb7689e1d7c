"""
Frames: what one commit wrote, as one bus message.

The bytes of a frame are a function of the recorded rows alone, so a frame rebuilt from the database
equals the one on the bus and the two can be compared by hash.
"""

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One recorded event. `data` is the msgpack of a tagged event, `meta` of a map (trace context), or empty."""

    stream: str
    version: int
    """Counts from 1 inside `stream`, without gaps."""
    type: str
    data: bytes
    meta: bytes = b""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """All events of one commit of one shard."""

    shard: str
    epoch: int
    number: int
    """Counts from 1 inside `shard`, without gaps; equals the sequence on the shard's stream."""
    position: int
    """Position in the shard of the first entry; entry `i` is at `position + i`. Counts from 1, without gaps."""
    at: int
    """When the first of its events was decided, microseconds since the epoch, UTC."""
    entries: list[Entry]

    @property
    def head(self) -> int:
        """The shard's head after this frame: the position of its last entry."""
        return self.position + len(self.entries) - 1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)


def encode(frame: Frame) -> bytes:
    """The bytes of `frame`, deterministic."""
    return _encoder.encode(frame)


def decode(data: bytes) -> Frame:
    """Inverse of `encode`; raises `msgspec.MsgspecError` on anything that is not a frame."""
    return _decoder.decode(data)
