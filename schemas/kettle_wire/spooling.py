"""What a submitter says of the input files of jobs that are sent to the access point."""

from typing import Annotated

import msgspec

from kettle_wire.jobs import Number

Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
"""A SHA-256 in hexadecimal digits, by which a file is known."""

Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""Bytes."""

PIECE = 512 * 1024
"""Bytes of a file that travel in one message, about."""


class SpooledFile(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An input file, by its name in the sandbox; `mode`: its permission bits there."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]
    sha256: Digest
    size: Size
    mode: Annotated[int, msgspec.Meta(ge=0, le=0o777)]


class Procs(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Jobs `first` to `first + count - 1` of a cluster."""

    first: Number
    count: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class Share(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Jobs that have the same input files, and which of the lists is theirs."""

    jobs: Procs
    files: Number


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which input files jobs of a cluster have.  It is sent as a file itself, in msgpack."""

    lists: list[list[SpooledFile]]
    shares: list[Share]
