"""Tokens that somebody asks for and somebody else approves: what is decided."""

from hashlib import sha256
from typing import Any

import pytest

from kettle_services.iam.domain import token_requests
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register, TokenRequest
from kettle_wire.events.iam import IdentityEvent, TokenRequested

NOW = 1_000_000.0
SECRET = "s" * 32


def asked(number: str = "0000001", **more: Any) -> TokenRequested:
    event: dict[str, Any] = {
        "request": number,
        "hash": sha256(SECRET.encode()).hexdigest(),
        "client": "n1-1",
        "address": "192.0.2.7",
        "identity": "condor@pool",
        "levels": ["ADVERTISE_STARTD"],
        "expires": NOW + 3600,
        "at": NOW,
    }
    return TokenRequested(**(event | more))


def register(*changes: tuple[str, IdentityEvent]) -> Register:
    made = Register()
    for stream, event in changes:
        made.apply(stream, event)
    return made


def requested(event: TokenRequested) -> tuple[Register, TokenRequest]:
    made = register(*token_requests.requested(Register(), event))
    found = made.find(TokenRequest, token_requests.stream(event.request))
    assert found is not None
    return made, found


@pytest.mark.parametrize(
    ("more", "approved"),
    [
        ({}, True),
        ({"levels": ["ADVERTISE_STARTD", "ADVERTISE_MASTER", "ADVERTISE_SCHEDD"]}, True),
        ({"levels": []}, False),
        ({"levels": ["ADVERTISE_STARTD", "READ"]}, False),
        ({"levels": ["DAEMON"]}, False),
        ({"identity": "ada@pool"}, False),
        ({"identity": "condor@elsewhere"}, False),
        ({"identity": "condor@pool.evil"}, False),
        ({"address": "192.0.3.7"}, False),
        ({"address": "::ffff:192.0.2.7"}, True),
        ({"address": ""}, False),
        ({"at": NOW - 59}, True),
        ({"at": NOW - 61}, False),
    ],
)
def test_a_rule_approves_what_daemons_ask_for_themselves(more: dict[str, Any], *, approved: bool) -> None:
    """And nothing else: another identity, another level, another network and what is too old have to wait."""
    _, request = requested(asked(**more))
    rule = token_requests.auto_approval("192.0.2.0/24", lifetime=600, by="root", now=NOW)
    found = token_requests.rule_for(register(*rule), request, "pool", now=NOW + 1)
    assert approved == (found is not None)


def test_a_rule_ends() -> None:
    """After its time it approves nothing, and is forgotten."""
    rules = register(*token_requests.auto_approval("192.0.2.7", lifetime=600, by="root", now=NOW))
    _, request = requested(asked())
    assert token_requests.rule_for(rules, request, "pool", now=NOW + 599)
    assert not token_requests.rule_for(rules, request, "pool", now=NOW + 600)
    assert ["autoapproval/192.0.2.7/32"] == [
        stream for stream, _ in token_requests.over(rules, now=NOW + 600)
    ]


@pytest.mark.parametrize("netblock", ["192.0.2.0/33", "192.0.2", "condor", "1.2.3.4/a"])
def test_what_is_no_network_is_refused(netblock: str) -> None:
    """In one sentence, with an example."""
    with pytest.raises(Denied, match=r"is no network: write it as 192\.0\.2\.0/24"):
        token_requests.auto_approval(netblock, lifetime=600, by="root", now=NOW)


def test_the_secret_collects_and_nothing_else() -> None:
    """A wrong number and a wrong secret are refused alike; a minute after it was collected it is over."""
    made, request = requested(asked())
    for stream, event in token_requests.approved(
        request, token="t", key="POOL", lifetime=60, by="root", now=NOW
    ):
        made.apply(stream, event)
    refusals: set[tuple[Code, str]] = set()
    for number, secret in (("0000001", "x" * 32), ("0000002", SECRET)):
        with pytest.raises(Denied) as caught:
            token_requests.collectable(made, number, secret, now=NOW)
        refusals.add((caught.value.code, str(caught.value)))
    assert [Code.TOKENREQUEST_UNKNOWN] == [code for code, _ in refusals]
    approved = token_requests.collectable(made, "0000001", SECRET, now=NOW)
    for stream, event in token_requests.collected(approved, address="192.0.2.7", now=NOW):
        made.apply(stream, event)
    again = token_requests.collectable(made, "0000001", SECRET, now=NOW + 60)
    assert [] == token_requests.collected(again, address="192.0.2.7", now=NOW + 60)
    with pytest.raises(Denied):
        token_requests.collectable(made, "0000001", SECRET, now=NOW + 61)
    assert 1 == len(token_requests.over(made, now=NOW + 61))


def test_nobody_fills_the_list() -> None:
    """Twenty requests of one address, a thousand of all; those that are over do not count."""
    made = Register()
    for number in range(token_requests.MOST_OF_ONE):
        for stream, event in token_requests.requested(made, asked(f"{number:07d}")):
            made.apply(stream, event)
    with pytest.raises(Denied) as caught:
        token_requests.requested(made, asked("9999999"))
    assert (429, 60) == (caught.value.status, caught.value.retry_after)
    assert token_requests.requested(made, asked("9999999", address="192.0.2.8"))
    assert token_requests.requested(made, asked("9999999", at=NOW + 3600, expires=NOW + 7200))


@pytest.mark.parametrize(
    ("levels", "ordinary"),
    [(["READ"], True), (["READ", "WRITE"], True), ([], False), (["WRITE", "ADMINISTRATOR"], False)],
)
def test_no_limit_is_more_than_any(levels: list[str], *, ordinary: bool) -> None:
    """Who may do no more than WRITE gives no token away that names no level."""
    if ordinary:
        token_requests.require_ordinary(levels, whose="ada@pool")
    else:
        with pytest.raises(Denied, match="is given by an administrator"):
            token_requests.require_ordinary(levels, whose="ada@pool")


def test_a_level_that_there_is_not_is_refused_with_the_nearest() -> None:
    """OWNER is in no token either."""
    with pytest.raises(Denied, match="ADVERTISE_START for a token; did you mean ADVERTISE_STARTD"):
        token_requests.require_levels(["READ", "ADVERTISE_START"])
    with pytest.raises(Denied, match="no level OWNER"):
        token_requests.require_levels(["OWNER"])
