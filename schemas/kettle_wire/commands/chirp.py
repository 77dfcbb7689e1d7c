"""
What a running job asks of its submit side, by way of its starter and startd: its ad, its log, its owner's files.

The words follow the chirp protocol, which the job speaks with its starter: descriptors are numbers that live as long as
the attempt, and a negative result is one of that protocol's errors.
"""

from enum import IntEnum
from typing import Annotated, Final

import msgspec

from kettle_wire.ads.types import Integer

PIECE: Final = 256 * 1024
"""Bytes of a file in one message."""

Text = Annotated[str, msgspec.Meta(max_length=5120)]
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Length = Annotated[int, msgspec.Meta(ge=0, le=PIECE)]


class Trouble(IntEnum):
    """The errors of the protocol."""

    NOT_AUTHENTICATED = -1
    NOT_AUTHORIZED = -2
    DOESNT_EXIST = -3
    ALREADY_EXISTS = -4
    TOO_BIG = -5
    NO_SPACE = -6
    NO_MEMORY = -7
    INVALID_REQUEST = -8
    TOO_MANY_OPEN = -9
    BUSY = -10
    TRY_AGAIN = -11
    BAD_FD = -12
    IS_DIR = -13
    NOT_DIR = -14
    NOT_EMPTY = -15
    CROSS_DEVICE_LINK = -16
    OFFLINE = -17
    UNKNOWN = -127


class GetAttribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="get_attribute"):
    """The text of an attribute of the job's ad, as it is now in the queue."""

    name: Text


class SetAttribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="set_attribute"):
    """Change an attribute of the job's ad; answered when it is recorded."""

    name: Text
    expression: Text


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="note"):
    """Write a line into the job event log."""

    text: Text


class OpenFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="open"):
    """
    Open a file; the answer is its descriptor and, as data, what `stat` says of it. Flags: letters of `rwatcx`.
    """

    path: Text
    flags: Text
    mode: Natural = 0o777


class CloseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="close"):
    """Close a descriptor."""

    fd: Natural


class ReadFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="read"):
    """
    Read on, or at `offset`; with a stride so many bytes, then again so much further from where those began.
    """

    fd: Natural
    length: Length
    offset: Natural | None = None
    stride: tuple[Natural, Natural] | None = None


class WriteFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="write"):
    """Write bytes of a file."""

    fd: Natural
    data: Annotated[bytes, msgspec.Meta(max_length=PIECE)]
    offset: Natural | None = None
    stride: tuple[Natural, Natural] | None = None


class SeekFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="seek"):
    """Move the place at which a descriptor reads or writes on; the answer is the new place."""

    fd: Natural
    offset: Integer
    whence: Annotated[int, msgspec.Meta(ge=0, le=2)]


class OnFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="on_file"):
    """Something with an open file: `fsync`, `fstat`, `fstatfs`, `fchmod`, `fchown`, `ftruncate`."""

    verb: Text
    fd: Natural
    numbers: list[Integer] = []


class OnPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="on_path"):
    """
    Something with paths: `unlink`, `rename`, `stat`, `getdir` and so on, with the protocol's names and numbers.
    """

    verb: Text
    paths: list[Text]
    numbers: list[Integer] = []


Wish = (
    GetAttribute
    | SetAttribute
    | Note
    | OpenFile
    | CloseFile
    | ReadFile
    | WriteFile
    | SeekFile
    | OnFile
    | OnPath
)


class Chirped(msgspec.Struct, frozen=True, tag="chirped"):
    """The answer: a result that is no error, with data or without; else one of `Trouble`."""

    result: int = 0
    data: bytes = b""
