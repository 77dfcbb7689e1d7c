"""
The ticket with which a job's side opens its tunnel: a token that says one thing, that its holder publishes the services of one attempt
of one job.  Pure.

The gateway makes it and the gateway alone takes it: it has an issuer and an audience of its own, and its scope is no level, so that
it is worth nothing anywhere else.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.jobs.pool_access import session_of
from kettle_wire.jobs import JobId

AUDIENCE: Final = "kettle-tunnels"
SCOPE: Final = "condor:/PUBLISH"
"""A capability that implies no level."""
ATTEMPT: Final = "kettle_attempt"
"""The claim that names schedd, job and number of the attempt."""
LIFETIME_S: Final = 20 * 60
"""How long it is valid; a new one is asked for when two thirds of it are over."""


def issuer_of(pool: str) -> str:
    """
    Who signs tickets of a pool: a name that nobody can ask for keys, because nobody else is to believe it.
    """
    return f"https://tickets.kettle.invalid/{pool}"


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What a ticket says."""

    schedd: str
    job: JobId
    attempt: int
    owner: str
    """Of the job, as its queue has said when the ticket was made."""
    expires: float
    """Seconds since the epoch."""

    @property
    def session(self) -> str:
        """The attempt as other tokens of it name it."""
        return session_of(self.schedd, self.job, self.attempt)


class TicketRefusedError(Exception):
    """It is no ticket, or one that is not good any more; the text is one sentence, without the ticket."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class _Attempt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    schedd: str
    job: JobId
    attempt: int


def claims_of(schedd: str, job: JobId, attempt: int) -> dict[str, object]:
    """What stands in a ticket besides what every token has."""
    return {ATTEMPT: msgspec.to_builtins(_Attempt(schedd, job, attempt))}


def ticket_of(subject: str, scopes: tuple[str, ...], expires: float, claims: Mapping[str, object]) -> Ticket:
    """
    The ticket in a token whose signature, time, issuer and audience were checked.

    Raises TicketRefusedError: it is another kind of token.
    """
    if scopes != (SCOPE,):
        raise TicketRefusedError("token.scope", "the token is none with which services are published")
    try:
        found = msgspec.convert(claims.get(ATTEMPT), _Attempt)
    except msgspec.ValidationError:
        raise TicketRefusedError(
            "token.malformed", "the token does not say for which attempt of which job it is"
        ) from None
    return Ticket(schedd=found.schedd, job=found.job, attempt=found.attempt, owner=subject, expires=expires)
