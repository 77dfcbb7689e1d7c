"""What the owner of a shard is asked about its log, by readers that have no database."""

from typing import Annotated, Final

import msgspec

from kettle_wire.endpoint import Caller, Endpoint, Repeat

MOST_BYTES: Final = 16 * 1024 * 1024
"""The most that one answer is asked to hold."""

LARGEST_NUMBER: Final = 2**63 - 1
Number = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_NUMBER)]


class ReadFrames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Frames of one shard with `after < number <= until`; `until` 0 means up to the present head."""

    after: Number = 0
    until: Number = 0
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=MOST_BYTES)] = 1024 * 1024
    """What the frames may have together; the first one comes whatever its size."""


class Frames(msgspec.Struct, frozen=True, kw_only=True):
    """
    Frames from the first one asked for, in order, without a gap; none if there are none after it.

    Each is encoded as `kettle_wire.frames` says, with its entries; a reader that gets fewer than it wants asks again.
    """

    frames: list[bytes]
    head: Number
    """The number of the shard's last frame."""


READ_FRAMES = Endpoint(
    "log",
    "frames",
    ReadFrames,
    Frames,
    callers=(Caller.SHADOW, Caller.ACCOUNTING, Caller.AUDIT, Caller.GATEWAY, Caller.DAGMAN, Caller.SESSIONS),
    repeat=Repeat.QUERY,
)
