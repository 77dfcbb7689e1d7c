"""
Values that somebody keeps under keys in the pool: small facts that programs share, through iam, which records them.
"""

from kettle.client.connections.transport import Requests, new_id
from kettle.client.join_tokens import PATIENCE_S
from kettle_wire.commands.key_values import (
    GET_VALUE,
    LIST_VALUES,
    REMOVE_VALUES,
    SET_VALUE,
    GetValue,
    ListValues,
    RemoveValues,
    SetValue,
)


class KeyValueClient:
    """One's own; all of it raises CommandRefusedError, or ClientError where the pool has no iam."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def set(self, key: str, value: bytes, *, expected: bytes | None = None) -> None:
        """Keep a value; with `expected` only in the place of this one."""
        request = SetValue(id=new_id(), key=key, value=value, expected=expected)
        await self._requests.ask(SET_VALUE, request, patience=PATIENCE_S)

    async def get(self, key: str) -> bytes:
        """One value."""
        return (await self._requests.ask(GET_VALUE, GetValue(key=key), patience=PATIENCE_S)).value

    async def list(self, prefix: str = "") -> dict[str, bytes]:
        """Those whose keys begin so, in the order of the keys."""
        return (await self._requests.ask(LIST_VALUES, ListValues(prefix=prefix), patience=PATIENCE_S)).values

    async def remove(self, key: str, *, prefix: bool = False) -> None:
        """Keep one no longer, or all whose keys begin so."""
        request = RemoveValues(id=new_id(), key=key, prefix=prefix)
        await self._requests.ask(REMOVE_VALUES, request, patience=PATIENCE_S)
