"""
Values that people keep under keys of their own. Pure.

All of one person's are one stream: how much that is, and what begins with a prefix, is decided over them together, and a key that
is free again leaves nothing behind.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping

import msgspec

from kettle_services.iam.domain.refusals import Code, Denied
from kettle_wire.commands.key_values import MOST_KEPT, MOST_KEYS, RemoveValues, SetValue
from kettle_wire.events.iam import ValueSet, ValuesRemoved


class KeptValues(msgspec.Struct, frozen=True, tag=True):
    """The values of one person."""

    values: Mapping[str, bytes]

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        return sum(_size(key, value) for key, value in self.values.items())


NONE = KeptValues({})


def stream(owner: str) -> str:
    """Where somebody's values are recorded."""
    return f"values/{owner}"


def fold_values(state: KeptValues | None, event: ValueSet | ValuesRemoved) -> KeptValues | None:
    """The values after an event; None: there are none."""
    values = dict(state.values) if state is not None else {}
    match event:
        case ValueSet():
            values[event.key] = b64decode(event.value)
        case ValuesRemoved():
            for key in event.keys:
                values.pop(key, None)
    return KeptValues(values) if values else None


def decide_set(kept: KeptValues, command: SetValue, *, owner: str, now: float) -> list[ValueSet]:
    """Raises Denied: the key has another value than expected, or there would be too much."""
    before = kept.values.get(command.key)
    if command.expected is not None and before != command.expected:
        raise Denied(
            Code.VALUE_CHANGED,
            f"the key {command.key} has {'no' if before is None else 'another'} value, so nothing was replaced: read it again",
            status=409,
        )
    if before == command.value:
        return []
    grown = kept.size - (_size(command.key, before) if before is not None else 0)
    if grown + _size(command.key, command.value) > MOST_KEPT:
        raise Denied(
            Code.VALUE_TOO_MUCH,
            f"the keys and values of {owner} would have more than {MOST_KEPT:,} bytes together: remove some",
            status=400,
        )
    if before is None and len(kept.values) >= MOST_KEYS:
        raise Denied(
            Code.VALUE_TOO_MUCH,
            f"{owner} has {MOST_KEYS:,} keys, which is the most: remove some",
            status=400,
        )
    return [ValueSet(owner=owner, key=command.key, value=b64encode(command.value).decode(), at=now)]


def decide_removal(kept: KeptValues, command: RemoveValues, *, owner: str, now: float) -> list[ValuesRemoved]:
    """Raises Denied: there is no such key."""
    if command.prefix:
        keys = sorted(key for key in kept.values if key.startswith(command.key))
    else:
        found(kept, command.key)
        keys = [command.key]
    return [ValuesRemoved(owner=owner, keys=keys, at=now)] if keys else []


def found(kept: KeptValues, key: str) -> bytes:
    """Raises Denied: there is no such key."""
    value = kept.values.get(key)
    if value is None:
        raise Denied(Code.VALUE_UNKNOWN, f"no value is kept under the key {key}", status=404)
    return value


def _size(key: str, value: bytes) -> int:
    return len(key.encode()) + len(value)
