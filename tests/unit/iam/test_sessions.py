"""Refresh tokens: how long they are good, and what a copy of one comes to."""

import pytest

from kettle_services.iam.domain import sessions
from kettle_services.iam.domain.join_tokens import digest
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import EARLIER, Register, Session, row_of, state_of
from kettle_wire.events import SessionOpened, SessionRenewed


def register() -> Register:
    """A session of ada, opened at 0 s with the secret `a`, and renewed at 10 s with `b`."""
    made = Register()
    opened = SessionOpened(
        session="s", subject="ada", hash=digest("a"), lifetime=100.0, ends=1000.0, by="ada", at=0.0
    )
    made.apply("session/s", opened)
    made.apply("session/s", SessionRenewed(session="s", hash=digest("b"), address="192.0.2.1", at=10.0))
    return made


def token(secret: str) -> sessions.RefreshToken:
    return sessions.parse(sessions.refresh_token("s", secret))


def test_a_copy_of_a_refresh_token_ends_the_session() -> None:
    """
    The one before is accepted for a minute, because its answer may have been lost; later its use says that there is a copy.
    """
    assert "ada" == sessions.session_of(register(), token("a"), now=70.0).subject
    with pytest.raises(sessions.Reused):
        sessions.session_of(register(), token("a"), now=71.0)


def test_a_copy_ends_the_session_however_old_it_is() -> None:
    """
    Each of the last 256 refresh tokens before the present one is known for a copy at once; one that nobody gave is just wrong.
    """
    known = register()
    session = sessions.session_of(known, token("b"), now=20.0)
    for number in range(EARLIER):
        for stream, event in sessions.renewed(session, digest(f"n{number}"), address="", now=20.0 + number):
            known.apply(stream, event)
    for secret in ("a", "b", "n0", "n100"):
        with pytest.raises(sessions.Reused):
            sessions.session_of(known, token(secret), now=300.0)
    with pytest.raises(Denied) as caught:
        sessions.session_of(known, token("never given"), now=300.0)
    assert Code.TOKEN_UNKNOWN == caught.value.code
    kept = known.find(Session, "session/s")
    assert kept is not None
    assert EARLIER == len(kept.earlier)
    assert kept == state_of(row_of(kept))


def test_a_session_slides_and_ends() -> None:
    """It lasts as long after its last use as it may, and no longer."""
    assert "ada" == sessions.session_of(register(), token("b"), now=109.0).subject
    with pytest.raises(Denied) as caught:
        sessions.session_of(register(), token("b"), now=110.0)
    assert Code.TOKEN_EXPIRED == caught.value.code
    [(stream, event)] = sessions.over(register(), now=110.0)
    known = register()
    known.apply(stream, event)
    with pytest.raises(Denied) as caught:
        sessions.session_of(known, token("b"), now=20.0)
    assert Code.TOKEN_UNKNOWN == caught.value.code


def test_a_withdrawn_token_is_remembered_until_it_ends() -> None:
    """Withdrawn twice is withdrawn once; after its time nothing is kept of it."""
    known = Register()
    [(stream, event)] = sessions.revoked(known, "t", "ada", expires=50.0, by="ada", now=0.0)
    known.apply(stream, event)
    assert known.is_revoked("t")
    assert [] == sessions.revoked(known, "t", "ada", expires=50.0, by="ada", now=1.0)
    [(stream, event)] = sessions.over(known, now=50.0)
    known.apply(stream, event)
    assert not known.is_revoked("t")
    assert {} == known.states
