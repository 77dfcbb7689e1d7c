"""What a ticket says."""

import pytest

from kettle.auth.tokens.capabilities import LEVEL_SCOPES
from kettle.auth.tokens.checking.scopes import is_capability
from kettle.published.ticket import SCOPE, TicketRefusedError, claims_of, ticket_of
from kettle_wire.jobs import JobId

CLAIMS = claims_of("schedd", JobId(12, 3), 4)


def test_a_ticket_names_one_attempt() -> None:
    """Schedd, job and attempt are as they were given; the owner is the subject."""
    ticket = ticket_of("ada", (SCOPE,), 99.0, CLAIMS)
    assert (ticket.schedd, ticket.job, ticket.attempt, ticket.owner) == ("schedd", JobId(12, 3), 4, "ada")
    assert ticket.session == "schedd#12.3#4"


def test_its_scope_is_a_right_and_no_level() -> None:
    """
    So that nobody who reads scopes gives its holder anything: without a capability a token would not be limited at all.
    """
    assert is_capability(SCOPE)
    assert SCOPE not in LEVEL_SCOPES


@pytest.mark.parametrize("scopes", [(), ("condor:/READ",), (SCOPE, "condor:/WRITE")])
def test_another_token_is_none(scopes: tuple[str, ...]) -> None:
    """It has this scope and no other."""
    with pytest.raises(TicketRefusedError) as error:
        ticket_of("ada", scopes, 99.0, CLAIMS)
    assert error.value.code == "token.scope"


@pytest.mark.parametrize(
    "claims",
    [{}, {"kettle_attempt": "schedd#1.0#1"}, {"kettle_attempt": {"schedd": "s", "job": "1.0", "attempt": 1}}],
)
def test_a_token_without_an_attempt_is_none(claims: dict[str, object]) -> None:
    """Nor one that spells it in another way."""
    with pytest.raises(TicketRefusedError) as error:
        ticket_of("ada", (SCOPE,), 99.0, claims)
    assert error.value.code == "token.malformed"
