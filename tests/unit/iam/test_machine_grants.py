"""Machines that people let in stay as long as what those have shown is good."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from kettle_services.iam.domain import join_tokens, machine_grants
from kettle_services.iam.domain.join_tokens import Joining, JoinTokenParts, Lives, digest
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register
from kettle_wire.events import (
    BanSet,
    IdentityEvent,
    JoinTokenCreated,
    SessionClosed,
    SessionOpened,
    TokenRevoked,
)
from kettle_wire.events.iam import Grant

PIN = "0" * 64
DAY = 86_400.0
OF_SESSION = Grant(names=("user:ada", "issuer:https://pool"), tokens=("jti",), session="s1")
OF_TOKEN = Grant(names=("user:ada",), tokens=("jti", "parent"), ends=3600.0)
BANNED = [("ban/user:ada", BanSet(whom="user:ada", by="grace", at=10.0))]
CLOSED = [("session/s1", SessionClosed(session="s1", why="revoked", by="ada", at=10.0))]


def withdrawn(token: str) -> list[tuple[str, IdentityEvent]]:
    event = TokenRevoked(token=token, subject="ada", expires=400 * DAY, by="grace", at=10.0)
    return [(f"token/{token}/1", event)]


def fold(register: Register, changes: Sequence[tuple[str, IdentityEvent]]) -> None:
    for stream, event in changes:
        register.apply(stream, event)


def with_token(grant: Grant) -> Register:
    """A join token `t` of ada, made at 0 s, and her session `s1`."""
    register = Register()
    session = SessionOpened(
        session="s1", subject="ada", hash="h", lifetime=DAY, ends=90 * DAY, by="ada", at=0.0
    )
    token = JoinTokenCreated(
        token="t",
        hash=digest("s"),
        owner="ada",
        by="ada",
        expires=1800.0,
        max_uses=2,
        at=0.0,
        grant=grant,
    )
    fold(register, [("session/s1", session), ("jointoken/t", token)])
    return register


def join(register: Register, name: str = "n1", *, now: float = 0.0) -> None:
    machine = Joining(parts=JoinTokenParts("t", "s", PIN), name=name, key=f"U{name}", address="192.0.2.1")
    lives = Lives(pool=0.0, own=7 * DAY)
    fold(register, join_tokens.joined(register, machine, pin=PIN, lives=lives, now=now).changes)


def renew(register: Register, *, now: float) -> float:
    worker, changes = machine_grants.renewed(register, "n1", lifetime=7 * DAY, now=now)
    fold(register, changes)
    return worker.expires


@pytest.mark.parametrize(
    ("grant", "what"),
    [
        (machine_grants.of_account("ada"), BANNED),
        (OF_SESSION, BANNED),
        (OF_SESSION, CLOSED),
        (OF_SESSION, withdrawn("jti")),
        (OF_TOKEN, withdrawn("jti")),
        (OF_TOKEN, withdrawn("parent")),
        (OF_SESSION, [("ban/issuer:https://pool", BanSet(whom="issuer:https://pool", by="g", at=1.0))]),
    ],
)
def test_machines_go_with_what_let_them_in(grant: Grant, what: list[tuple[str, IdentityEvent]]) -> None:
    """
    Those that are there, and the join tokens for more of them: by a ban, the end of the session, or the withdrawal of the token or
    of one that it was made from.
    """
    register = with_token(grant)
    join(register)
    assert [] == list(machine_grants.strangers(register, now=20.0))
    fold(register, what)
    with pytest.raises(Denied) as refusal:
        join(register, "n2", now=20.0)
    assert refusal.value.code in {Code.JOIN_REVOKED, Code.JOIN_BANNED}
    with pytest.raises(Denied, match="is not renewed"):
        renew(register, now=20.0)
    [worker] = machine_grants.strangers(register, now=20.0)
    fold(register, machine_grants.gone(worker, now=20.0))
    fold(register, machine_grants.withdrawn_tokens(register, now=20.0))
    assert [] == list(machine_grants.strangers(register, now=20.0))
    assert [] == machine_grants.withdrawn_tokens(register, now=20.0)


def test_what_others_are_refused_ends_no_machine() -> None:
    """
    Neither another person's ban nor another token's withdrawal, and none of those ends a machine of an administrator's token.
    """
    register = with_token(OF_TOKEN)
    join(register)
    fold(register, [("ban/user:bob", BanSet(whom="user:bob", by="grace", at=10.0)), *withdrawn("other")])
    assert [] == list(machine_grants.strangers(register, now=20.0))
    assert 7 * DAY == renew(register, now=20.0)

    given = Register()
    token = JoinTokenCreated(token="t", hash=digest("s"), owner="ada", by="grace", expires=1800.0, at=0.0)
    fold(given, [("jointoken/t", token)])
    join(given)
    fold(given, BANNED)
    assert [] == list(machine_grants.strangers(given, now=20.0))
    with pytest.raises(Denied, match="no person has let it in"):
        renew(given, now=20.0)


def test_a_machine_outlives_its_token_by_the_life_of_its_credential_at_the_most() -> None:
    """
    A token of an hour lets a machine in for some days and is not renewed after its end; a session's is as long as that is
    open.
    """
    of_token, of_session = with_token(OF_TOKEN), with_token(OF_SESSION)
    join(of_token, now=3500.0 - 1800.0)
    join(of_session)
    late = 5 * DAY
    with pytest.raises(Denied, match="the token with which it was let in has ended"):
        renew(of_token, now=late)
    assert late + 7 * DAY == renew(of_session, now=late)
    assert ["worker/n1"] == [stream for stream, _ in join_tokens.ended(of_token, now=8 * DAY)]
    assert [] == join_tokens.ended(of_session, now=8 * DAY)


def test_who_asks_often_is_recorded_once() -> None:
    """A machine that has more than half of its days gets no more of them."""
    register = with_token(OF_SESSION)
    join(register)
    for now, recorded in ((3 * DAY, 0), (4 * DAY, 1)):
        _, changes = machine_grants.renewed(register, "n1", lifetime=7 * DAY, now=now)
        assert recorded == len(changes)


def test_people_remove_what_they_have_let_in_and_nothing_else() -> None:
    """
    Neither another person's machine, of which they are not told, nor one that an administrator has let in for them.
    """
    register = with_token(machine_grants.of_account("ada"))
    join(register)
    with pytest.raises(Denied, match="no machine n1 has joined for the jobs of bob"):
        join_tokens.left_own(register, "n1", person="bob", now=1.0)
    with pytest.raises(Denied, match="bob has made no join token t"):
        join_tokens.revoked_own(register, "t", person="bob", now=1.0)
    given = replace(register.states["worker/n1"], worker="n2", grant=None)
    register.restore("worker/n2", given)
    with pytest.raises(Denied, match="ada has not let n2 in"):
        join_tokens.left_own(register, "n2", person="ada", now=1.0)
    fold(register, join_tokens.left_own(register, "n1", person="ada", now=1.0))
    fold(register, join_tokens.revoked_own(register, "t", person="ada", now=1.0))
    assert {"session/s1", "jointoken/t", "worker/n2"} == set(register.states)
