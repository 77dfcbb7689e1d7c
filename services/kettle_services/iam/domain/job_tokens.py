"""
Tokens of running jobs: what each may say, by what its description asks for and the settings give, and when they are over. Pure.

A job's token is its owner's, narrowed: to scopes and audiences that the settings name, to minutes, and by the claim `kettle_session`
to the attempt for which it was made.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.auth.tokens.issuing.derived import Grant
from kettle.auth.tokens.verified import JOB_CLAIM, Profile
from kettle_services.iam.domain.scopes import narrowed, narrowed_audiences
from kettle_services.iam.domain.sessions import Changes, revoked
from kettle_services.iam.domain.state import JOB, JobTokens, Register
from kettle_wire.events.iam import JobTokensOver, TokenIssued
from kettle_wire.job_tokens import NeededToken

JOB_SESSION: Final = JOB_CLAIM
"""The claim that names the attempt."""
OWNER: Final = "{owner}"
"""In scopes of the settings: the login name of the job's owner."""
_PROFILES: Final[Mapping[str, Profile]] = {"kettle": "wlcg", "scitokens": "scitokens"}


class JobTokenRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings give to jobs."""

    scopes: tuple[str, ...]
    audiences: tuple[str, ...]
    """The first one is that of a token whose job names none."""
    lifetime: int
    """Seconds."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A token, before it is signed."""

    name: str
    grant: Grant
    event: TokenIssued


def issued(register: Register, events: Sequence[TokenIssued]) -> Changes:
    """
    Tokens of one attempt.  Their stream has the name of the first one: an attempt that was thought to be over may go on.
    """
    return [
        (register.stream_of_session(event.session) or f"jobtokens/{events[0].token}", event)
        for event in events
    ]


def made(
    needed: NeededToken,
    rules: JobTokenRules,
    *,
    issuer: str,
    owner: str,
    session: str,
    token: str,
    now: float,
) -> Made:
    """
    The token that an attempt gets; `token` is its id.

    Raises:
        Denied: it would say more than the settings give to jobs.
    """
    held = [scope.replace(OWNER, owner) for scope in rules.scopes]
    scopes = narrowed(needed.scopes, held, whose=f"a job of {owner}")
    audiences = narrowed_audiences(
        needed.audiences or rules.audiences[:1], rules.audiences, whose="the token of a job"
    )
    grant = Grant(
        issuer=issuer,
        subject=owner,
        audience=audiences,
        scopes=scopes,
        lifetime=rules.lifetime,
        profile=_PROFILES[needed.service],
        claims={JOB_SESSION: session, "client_id": "kettle"},
    )
    event = TokenIssued(
        token=token,
        subject=owner,
        session=session,
        grant=JOB,
        scopes=list(scopes),
        audiences=list(audiences),
        expires=float(int(now) + rules.lifetime),
        at=now,
    )
    return Made(name=needed.name, grant=grant, event=event)


def ended(register: Register, session: str, *, now: float) -> Changes:
    """An attempt is over: its tokens are withdrawn. Said twice is said once."""
    stream = register.stream_of_session(session)
    known = register.find(JobTokens, stream)
    if known is None:
        return []
    withdrawn = [
        change
        for token, expires in known.tokens
        for change in revoked(register, token, known.subject, expires=expires, by=session, now=now)
    ]
    return [*withdrawn, (stream, JobTokensOver(session=session, at=now))]


def over(register: Register, *, now: float) -> Changes:
    """Attempts whose last token has ended by itself."""
    return [
        (register.stream_of_session(each.session), JobTokensOver(session=each.session, at=now))
        for each in register.all(JobTokens)
        if all(now >= expires for _, expires in each.tokens)
    ]
