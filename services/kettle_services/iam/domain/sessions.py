"""
Sessions and clients: who may have access tokens again and again, and for what.

A refresh token is `kettle-refresh-1.<session>.<secret>`. Each use gives the next one; the one before is accepted for a minute, because the
answer may have been lost, and after that its use ends the session, as does the use of one before that: somebody has a copy.
"""

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from kettle_services.iam.domain.join_tokens import digest, proves
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.scopes import require_known
from kettle_services.iam.domain.state import ClientRules, Register, Revoked, Session, shortened
from kettle_wire.events.iam import (
    ClientRegistered,
    ClientRemoved,
    Ended,
    IdentityEvent,
    SessionClosed,
    SessionOpened,
    SessionRenewed,
    TokenExpired,
    TokenRevoked,
)
from kettle_wire.iam_http import REFRESH_PREFIX

SESSION: Final = "sid"
"""The claim that names the session of whose refresh token a token came."""
PARENTS: Final = "parents"
"""The claim that names the tokens from which a token was made, the first one first: it is withdrawn with each of them."""
MOST_PARENTS: Final = 8
Changes = list[tuple[str, IdentityEvent]]
LOST_ANSWER_S: Final = 60.0
"""For so long the refresh token before the present one is accepted."""
MOST_SESSIONS: Final = 100
"""Of one person at a time."""


class RefreshToken(msgspec.Struct, frozen=True):
    """What a refresh token consists of."""

    session: str
    secret: str


class Reused(Denied):
    """A refresh token that had been exchanged came again: its session has to end."""

    def __init__(self, session: str) -> None:
        super().__init__(
            Code.TOKEN_REUSED,
            "this refresh token had been exchanged already, so its session is over; sign in again: kettle login",
            status=400,
        )
        self.session: Final = session


def refresh_token(session: str, secret: str) -> str:
    """A refresh token as it is presented."""
    return f"{REFRESH_PREFIX}.{session}.{secret}"


def parse(text: str) -> RefreshToken:
    """Take a refresh token apart; raises Denied for what is none."""
    parts = text.strip().split(".")
    if len(parts) != 3 or parts[0] != REFRESH_PREFIX or not all(parts):
        raise Denied(Code.TOKEN_MALFORMED, "this is no refresh token of this pool", status=400)
    return RefreshToken(parts[1], parts[2])


def opened(register: Register, event: SessionOpened) -> Changes:
    """Give somebody a refresh token; raises Denied if he has very many."""
    if sum(each.subject == event.subject for each in register.all(Session)) >= MOST_SESSIONS:
        raise Denied(
            Code.TOKEN_TOO_MANY,
            f"{event.subject} has {MOST_SESSIONS} sessions; end some: kettle token revoke ID",
        )
    return [(f"session/{event.session}", event)]


def session_of(register: Register, token: RefreshToken, *, now: float) -> Session:
    """
    The session that a refresh token belongs to.

    Raises:
        Reused: it had been exchanged, more than a minute ago.
        Denied: there is no such session, or it is over.
    """
    session = register.find(Session, f"session/{token.session}")
    if session is None:
        raise Denied(
            Code.TOKEN_UNKNOWN,
            "the session of this refresh token is over; sign in again: kettle login",
            status=400,
        )
    late, shown = now - session.used > LOST_ANSWER_S, shortened(digest(token.secret))
    # Who has lost two answers within a minute is just refused.
    if shown in session.earlier[not late :] or (late and proves(token.secret, session.former)):
        raise Reused(session.session)
    if not proves(token.secret, session.hash) and not proves(token.secret, session.former):
        raise Denied(Code.TOKEN_UNKNOWN, "the secret of this refresh token is wrong", status=400)
    if now >= session.expires:
        raise Denied(
            Code.TOKEN_EXPIRED, "this refresh token came too late; sign in again: kettle login", status=400
        )
    return session


def require_in_force(register: Register, token: str, claims: Mapping[str, object], *, ours: bool) -> None:
    """
    Raises Denied if a token was withdrawn; one of this pool's own (`ours`) ends also with the tokens and the session that it comes of.
    """
    parents = parents_of(claims) if ours else ()
    if any(each and register.is_revoked(each) for each in (token, *parents)):
        raise Denied(Code.TOKEN_REVOKED, "the token was withdrawn", status=401)
    session = claims.get(SESSION)
    if ours and isinstance(session, str) and register.find(Session, f"session/{session}") is None:
        raise Denied(
            Code.TOKEN_REVOKED, "the session of this token is over; sign in again: kettle login", status=401
        )


def parents_of(claims: Mapping[str, object]) -> tuple[str, ...]:
    """The tokens from which one of this pool's own was made."""
    named = claims.get(PARENTS)
    if not isinstance(named, list):
        return ()
    return tuple(each for each in cast("list[object]", named)[:MOST_PARENTS] if isinstance(each, str))


def renewed(session: Session, hash_: str, *, address: str, now: float) -> Changes:
    """Exchange a refresh token for the next one."""
    event = SessionRenewed(session=session.session, hash=hash_, address=address, at=now)
    return [(f"session/{session.session}", event)]


def closed(session: str, why: Ended, *, by: str, now: float) -> Changes:
    """End a session."""
    return [(f"session/{session}", SessionClosed(session=session, why=why, by=by, at=now))]


def registered(register: Register, event: ClientRegistered, *, replace: bool) -> Changes:
    """
    Let a program ask for tokens.

    Raises:
        Denied: there is one of this name and `replace` is not said, or no token has such a scope.
    """
    require_known(event.scopes)
    if not replace and register.find(ClientRules, f"client/{event.client}") is not None:
        raise Denied(
            Code.CLIENT_TAKEN,
            f"a client {event.client} is registered already, whose secret would be lost; to give it another one and these "
            "rules: --replace",
            status=409,
        )
    return [(f"client/{event.client}", event)]


def removed(register: Register, client: str, *, by: str, now: float) -> Changes:
    """Let a program have no more tokens; raises Denied for one that is not known."""
    if register.find(ClientRules, f"client/{client}") is None:
        raise Denied(
            Code.CLIENT_UNKNOWN, f"no client {client} is registered; see which are: kettle token client list"
        )
    return [(f"client/{client}", ClientRemoved(client=client, by=by, at=now))]


def client_of(register: Register, client: str, secret: str) -> ClientRules:
    """The client that presents its secret; raises Denied, in the same words whatever is wrong."""
    found = register.find(ClientRules, f"client/{client}")
    if found is None or not proves(secret, found.hash):
        raise Denied(Code.CLIENT_UNKNOWN, "there is no such client, or its secret is wrong", status=401)
    return found


def revoked(register: Register, token: str, subject: str, *, expires: float, by: str, now: float) -> Changes:
    """Have an access token be invalid; nothing is done about one that is already, or has ended."""
    if register.is_revoked(token) or now >= expires:
        return []
    event = TokenRevoked(token=token, subject=subject, expires=expires, by=by, at=now)
    return [(f"token/{token}/{expires:.0f}", event)]


def over(register: Register, *, now: float) -> Changes:
    """
    Sessions that nobody used for too long, or that are too old, and withdrawn access tokens that would have
    ended.
    """
    expired: Ended = "expired"
    sessions: Changes = [
        change
        for each in register.all(Session)
        if now >= each.expires
        for change in closed(each.session, expired, by="its time", now=now)
    ]
    tokens: Changes = [
        (f"token/{each.token}/{each.expires:.0f}", TokenExpired(token=each.token, at=now))
        for each in register.all(Revoked)
        if now >= each.expires
    ]
    return [*sessions, *tokens]
