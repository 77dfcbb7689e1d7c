"""Typed request/reply: which message a command takes, which it answers, and how it is refused."""

from typing import Annotated, Generic, TypeVar

import msgspec

from kettle_wire.jobs import Name

Request = TypeVar("Request", bound=msgspec.Struct)
Reply = TypeVar("Reply", bound=msgspec.Struct)


class Position(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a command was recorded; a query that names it sees its effect (read your writes)."""

    shard: Name
    frame: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Refusal(msgspec.Struct, frozen=True):
    """
    Why a command was not carried out. `code` is stable, for programs; `message` is a sentence, for people.
    """

    code: str
    message: str
    retry_after: int = 0
    """Milliseconds after which the same request may succeed; 0: unknown, or never."""


class Endpoint(Generic[Request, Reply]):
    """One verb of one role: `kettle.<pool>.cmd.<role>.<name>.<verb>`, msgpack both ways."""

    def __init__(self, role: str, verb: str, request: type[Request], reply: type[Reply]) -> None:
        self.role = role
        self.verb = verb
        self.request = request
        self.reply = reply
        self.decode_request = msgspec.msgpack.Decoder(request).decode
        self.decode_reply = msgspec.msgpack.Decoder(reply).decode

    def __repr__(self) -> str:
        return f"Endpoint({self.role}.{self.verb})"
