"""
Frames: what one commit wrote, as one bus message; one that is too large for a message goes there hollow.

The bytes of a frame are a function of the recorded rows alone, so a frame rebuilt from the database
equals the one on the bus and the two can be compared by hash.
"""

import msgspec


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    One recorded event. `data` is the msgpack of a tagged event, `meta` of a map (trace context), or empty.
    """

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
    """
    Position in the shard of the first entry; entry `i` is at `position + i`. Counts from 1, without gaps.
    """
    at: int
    """When the first of its events was decided, microseconds since the epoch, UTC."""
    entries: list[Entry]

    def position_of(self, index: int) -> int:
        """The position in the shard of an entry."""
        return self.position + index

    @property
    def head(self) -> int:
        """The shard's head after this frame: the position of its last entry."""
        return self.position + len(self.entries) - 1


class Hollow(msgspec.Struct, frozen=True, array_like=True):
    """
    A frame that is too large for one message of the bus, without its entries: they are in the log.

    On the wire it is a frame with no entries, which a recorded one never is, and their count behind it.
    """

    shard: str
    epoch: int
    number: int
    position: int
    at: int
    entries: list[Entry]
    """None."""
    count: int
    """How many entries the frame has in the log."""

    @property
    def head(self) -> int:
        """The shard's head after this frame: the position of its last entry."""
        return self.position + self.count - 1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)
_hollow = msgspec.msgpack.Decoder(Hollow)


def encode(frame: Frame | Hollow) -> bytes:
    """The bytes of `frame`, deterministic."""
    return _encoder.encode(frame)


def hollow(frame: Frame) -> Hollow:
    """What goes onto the bus instead of a frame that does not fit into one message."""
    return Hollow(frame.shard, frame.epoch, frame.number, frame.position, frame.at, [], len(frame.entries))


def decode(data: bytes) -> Frame | Hollow:
    """Inverse of `encode`; raises `msgspec.MsgspecError` on anything that is neither."""
    frame = _decoder.decode(data)
    return frame if frame.entries else _hollow.decode(data)


def recorded(data: bytes) -> Frame:
    """
    A frame as it was recorded, with its entries; raises `msgspec.MsgspecError` on anything else, a hollow one too.
    """
    frame = _decoder.decode(data)
    if not frame.entries:
        raise msgspec.ValidationError("a frame without entries")
    return frame
