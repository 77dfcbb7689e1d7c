"""
What iam is asked about values that people keep under keys of their own: small facts that their programs share, and agree about by
comparing before they set.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.iam import Recorded
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Repeat

LARGEST_VALUE: Final = 16_384
"""Bytes of one value."""
LONGEST_KEY: Final = 512
"""Characters of a key."""
MOST_KEPT: Final = 512 * 1024
"""Bytes of all keys and values of one person, which are together in one answer."""
MOST_KEYS: Final = 4096
"""Keys of one person: all of them are looked at when one is set."""

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_KEY, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""What a value is found by; it has no control characters."""
Value = Annotated[bytes, msgspec.Meta(max_length=LARGEST_VALUE)]


class SetValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keep a value of the caller's under a key, in the place of the one before."""

    id: CommandId
    key: Key
    value: Value
    expected: bytes | None = None
    """Refuse (`refused`) unless the key has this value now; None: whatever it has."""


class RemoveValues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keep the value of a key no longer."""

    id: CommandId
    key: Annotated[str, msgspec.Meta(max_length=LONGEST_KEY)]
    prefix: bool = False
    """All keys that begin so, of which there need be none; else just this one, or `not_found`."""


class GetValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of a key of the caller's; `not_found`."""

    key: Key


class KeptValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value."""

    value: bytes


class ListValues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The caller's own keys that begin with something, with their values."""

    prefix: Annotated[str, msgspec.Meta(max_length=LONGEST_KEY)] = ""


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """Values by key, in the order of the keys."""

    values: dict[str, bytes]


SET_VALUE = Endpoint(
    "iam", "set_value", SetValue, Recorded, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
REMOVE_VALUES = Endpoint(
    "iam", "remove_values", RemoveValues, Recorded, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
GET_VALUE = Endpoint("iam", "get_value", GetValue, KeptValue, callers=(Caller.USER,), repeat=Repeat.QUERY)
LIST_VALUES = Endpoint("iam", "list_values", ListValues, Values, callers=(Caller.USER,), repeat=Repeat.QUERY)
