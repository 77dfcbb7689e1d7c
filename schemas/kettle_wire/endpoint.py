"""Commands as they are declared: who may send which request, what answers it, and how it is refused."""

import sys
from collections.abc import Collection
from enum import StrEnum
from typing import Annotated, Generic, TypeVar

import msgspec

from kettle_wire.jobs import Name

Request = TypeVar("Request", bound=msgspec.Struct)
Reply = TypeVar("Reply", bound=msgspec.Struct)


CommandId = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[ -~]+$")]
"""Made by the caller, once for each command; the caller's repeats carry the same. Printable ASCII."""


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


class Caller(StrEnum):
    """
    A kind of caller: a daemon of the pool by its role, or somebody from outside of it. An endpoint names those that it is for.
    """

    USER = "user"
    """A person, for that person's own jobs."""
    ADMINISTRATOR = "administrator"
    """A person whom the service's settings name as its administrator."""
    JOB = "job"
    """A running job, in its owner's name and by way of its shadow."""
    VISITOR = "visitor"
    """A schedd of another pool together with its shadow, admitted here (`kettle_wire.flocking`)."""
    MASTER = "master"
    COLLECTOR = "collector"
    SCHEDD = "schedd"
    SHADOW = "shadow"
    STARTD = "startd"
    NEGOTIATOR = "negotiator"
    ACCOUNTING = "accounting"
    GATEWAY = "gateway"
    AUDIT = "audit"
    IAM = "iam"
    DAGMAN = "dagman"
    SCALER = "scaler"
    PROVISIONER = "provisioner"
    CE = "ce"
    SESSIONS = "sessions"


class Repeat(StrEnum):
    """What happens when a command arrives twice, since every caller repeats one whose answer was lost."""

    QUERY = "query"
    """It changes nothing and is answered afresh."""
    FIRST_ANSWER = "first answer"
    """Its request has an `id`: the first answer is remembered, and a repeat with the same id gets that."""
    HARMLESS = "harmless"
    """It says how things are or are to be, so that saying it again changes nothing."""


class Endpoint(Generic[Request, Reply]):
    """
    One command of one role, declared once: `kettle.<pool>.cmd.<role>.<name>.<verb>`, msgpack both ways.

    Who may publish on its subject, what its service refuses, how clients repeat it, the published schemas and the reference
    page all follow from this declaration.
    """

    def __init__(
        self,
        role: str,
        verb: str,
        request: type[Request],
        reply: type[Reply],
        *,
        callers: Collection[Caller],
        repeat: Repeat,
        largest: int = sys.maxsize,
        limited: bool = False,
        reads: bool | None = None,
    ) -> None:
        """
        `reads`: whether who may only look may send it, as queries are if nothing is said.
        `largest`: bytes of a request, larger ones are refused before they are taken in. `limited`: a service has only some
        of these requests in hand at once, so that however many come there is room for its other endpoints.
        """
        if repeat is Repeat.FIRST_ANSWER and "id" not in request.__struct_fields__:
            raise TypeError(f"{role}.{verb}: {request.__name__} has no id by which a repeat is known")
        self.role = role
        self.verb = verb
        self.request = request
        self.reply = reply
        self.callers = frozenset(callers)
        self.repeat = repeat
        self.largest = largest
        self.limited = limited
        self.reads: bool = repeat is Repeat.QUERY if reads is None else reads
        """Whether a person needs the level READ for it and no more."""
        self.decode_request = msgspec.msgpack.Decoder(request).decode
        self.decode_reply = msgspec.msgpack.Decoder(reply).decode

    def __repr__(self) -> str:
        return f"Endpoint({self.role}.{self.verb})"
