"""
Page tokens: where a page ends.

A token holds the place of the last row and a digest of the question, so one that belongs to another question is refused.
It needs no signature: it says from where on to look, and what somebody may see does not depend on that.
"""

import base64
import binascii
import hashlib
from datetime import datetime
from typing import Annotated, Final, TypeVar

import msgspec

from kettle.projections.stored_projection import instant
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.problem import ProblemCode

_NO_QUESTION: Final = frozenset({"page", "limit", "at_least"})
"""Parameters that may differ from one page to the next."""
_LATEST_US: Final = 62_000_000_000_000_000
"""Microseconds: no job is further away from the epoch, and both years that are have a date."""
_Small = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class RowPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of a job in a list: the value that is sorted by, then its queue and its number."""

    value: _Small | float | Name | None
    shard: Name
    cluster: Number
    proc: Number

    def typed(self, kind: str) -> datetime | int | float | str | None:
        """
        The value as a column of this type of the database has it.

        Raises RequestRefused: it has none like that, so nobody was given the token.
        """
        return _typed(self.value, kind)


class NamedPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """
    The place of something with a name in a list: the value that is sorted by, where it is recorded, and its name.
    """

    value: _Small | float | Name | None
    shard: Name
    name: Name

    def typed(self, kind: str) -> datetime | int | float | str | None:
        """See `RowPlace.typed`."""
        return _typed(self.value, kind)


class CyclePlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of a negotiation cycle: when it was recorded, whose it is, and its number."""

    value: _Small
    shard: Name
    cycle: _Small

    def moment(self) -> datetime:
        """When it was recorded; raises RequestRefused."""
        found = _typed(self.value, "timestamptz")
        assert isinstance(found, datetime)
        return found


class LogPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """
    How far each shard's record has been read towards the past: the frame and the position of the last event, by the shard's number.
    """

    shards: dict[_Small, tuple[_Small, _Small]]


def _typed(value: float | str | None, kind: str) -> datetime | int | float | str | None:
    if value is None:
        return None
    if isinstance(value, str):
        if kind == "text":
            return value
    elif kind == "double precision":
        return float(value)
    elif isinstance(value, int):
        if kind == "timestamptz" and abs(value) < _LATEST_US:
            return instant(value)
        if kind == "bigint" or (kind == "integer" and abs(value) < 2**31):
            return value
    raise _refused("it names a place that is in no list")


class AdPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of an ad in the collector's list."""

    type: Name
    name: Name


Place = TypeVar("Place", bound=msgspec.Struct)


class _Token(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    question: bytes
    place: msgspec.Raw


def page_token(parameters: msgspec.Struct, place: msgspec.Struct) -> str:
    """The token of what comes behind a place."""
    raw = msgspec.Raw(msgspec.msgpack.encode(place))
    data = msgspec.msgpack.encode(_Token(_digest(parameters), raw))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def row_place(parameters: msgspec.Struct, token: str) -> RowPlace:
    """Where a list of jobs goes on; raises RequestRefused."""
    return place_of(parameters, token, RowPlace)


def ad_place(parameters: msgspec.Struct, token: str) -> AdPlace:
    """Where a list of ads goes on; raises RequestRefused."""
    return place_of(parameters, token, AdPlace)


def place_of(parameters: msgspec.Struct, token: str, kind: type[Place]) -> Place:
    """Where a list goes on; raises RequestRefused."""
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        read = msgspec.msgpack.decode(data, type=_Token)
        place = msgspec.msgpack.decode(read.place, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        raise _refused("it is no page token of this interface: give `next` of the answer before") from None
    if read.question != _digest(parameters):
        raise _refused("it belongs to another question: only limit may differ from one page to the next")
    return place


def _refused(why: str) -> RequestRefused:
    return refused_field(
        "/query/page", f"the page token cannot be used: {why}", code=ProblemCode.PAGE_INVALID
    )


def _digest(parameters: msgspec.Struct) -> bytes:
    asked = {
        name: value for name, value in msgspec.structs.asdict(parameters).items() if name not in _NO_QUESTION
    }
    text = type(parameters).__name__.encode() + msgspec.json.encode(asked, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).digest()
