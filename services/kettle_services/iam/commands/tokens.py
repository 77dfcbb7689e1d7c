"""Access tokens and sessions of people."""

import re
import secrets
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.admissions import Pool
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain import sessions
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.rights import Known, on_the_bus
from kettle_services.iam.domain.scopes import narrowed, narrowed_audiences
from kettle_services.iam.domain.state import Session
from kettle_services.iam.grants import Grants, Wanted
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import iam
from kettle_wire.endpoint import Position
from kettle_wire.events.iam import SessionOpened
from kettle_wire.identity import Identity

_ID: Final = re.compile("[A-Za-z0-9_-]{22}|[0-9a-f]{32}")
"""The ids of access tokens of a pool, and of its IDTOKENS."""
_FOR_EVER_S: Final = 100 * 365 * 86_400.0
_OF_OTHERS_S: Final = 365 * 86_400.0
"""No token of another issuer that is accepted lives longer."""


class TokenCommands:
    """Gives tokens to people whom the bus knows, and takes them back."""

    def __init__(
        self,
        record: Record,
        grants: Grants,
        pool: Pool,
        settings: IamSettings,
        *,
        administrators: Callable[[], Collection[str]],
    ) -> None:
        self._record: Final = record
        self._grants = grants
        self._pool = pool
        self._settings = settings
        self._administrators = administrators

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(iam.OPEN_SESSION, self.open_session),
            pipeline.command(iam.OPEN_ANY_SESSION, self.open_any_session),
            Served(iam.ISSUE_TOKEN, self.issue_token, self._administrators),
            Served(iam.ISSUE_ANY_TOKEN, self.issue_any_token, self._administrators),
            pipeline.query(iam.LIST_TOKENS, self.list_tokens),
            pipeline.query(iam.LIST_ALL_TOKENS, self.list_all_tokens),
            pipeline.command(iam.REVOKE_TOKEN, self.revoke_token),
            pipeline.command(iam.REVOKE_ANY_TOKEN, self.revoke_any_token),
        ]

    @property
    def _audiences(self) -> tuple[str, ...]:
        return (self._pool.url, *self._settings.audiences)

    async def open_session(self, request: iam.BeginSession, caller: Identity) -> Decision[iam.SessionMade]:
        """Give a person a refresh token, for no more than WRITE."""
        return self._opened(request, caller, _person(caller))

    async def open_any_session(
        self, request: iam.BeginSession, caller: Identity
    ) -> Decision[iam.SessionMade]:
        """Give an administrator a refresh token."""
        return self._opened(request, caller, _administrator(caller))

    def _opened(
        self, request: iam.BeginSession, caller: Identity, person: Known
    ) -> Decision[iam.SessionMade]:
        now = time.time()
        with refusing():
            require_welcome(self._record.register, *person.names, now=now)
            usual = [scope for scope in person.scopes if scope != Level.ADMINISTRATOR.scope]
            scopes = narrowed(request.scopes or usual, person.scopes, whose=caller.name)
            audiences = narrowed_audiences(
                request.audiences or [self._pool.url], self._audiences, whose="a token of this pool"
            )
            event = SessionOpened(
                session=secrets.token_hex(8),
                subject=caller.name,
                hash=request.hash,
                scopes=list(scopes),
                audiences=list(audiences),
                note=request.note,
                lifetime=self._settings.session_lifetime,
                ends=now + self._settings.session_end,
                by=caller.name,
                at=now,
            )
            changes = sessions.opened(self._record.register, event)

        def reply(position: Position) -> iam.SessionMade:
            return iam.SessionMade(
                session=event.session,
                issuer=self._pool.url,
                scopes=event.scopes,
                audiences=event.audiences,
                expires=min(now + event.lifetime, event.ends),
                ends=event.ends,
                position=position,
            )

        return Decision(reply, changes)

    async def issue_token(self, request: iam.IssueToken, caller: Identity) -> iam.TokenMade:
        """Give a person an access token, which is stored nowhere, for no more than WRITE."""
        return await self._issued(request, _person(caller))

    async def issue_any_token(self, request: iam.IssueToken, caller: Identity) -> iam.TokenMade:
        """Give an administrator an access token, which is stored nowhere."""
        return await self._issued(request, _administrator(caller))

    async def _issued(self, request: iam.IssueToken, person: Known) -> iam.TokenMade:
        wanted = Wanted(scopes=request.scopes, audiences=request.audiences, lifetime=request.lifetime)
        with refusing():
            return await self._grants.for_person(person, self._audiences, wanted)

    async def list_tokens(self, request: iam.ListTokens, caller: Identity) -> iam.Sessions:
        """The sessions of who asks."""
        return self._listed(caller.name)

    async def list_all_tokens(self, request: iam.ListTokens, caller: Identity) -> iam.Sessions:
        """The sessions of all."""
        return self._listed("")

    def _listed(self, subject: str) -> iam.Sessions:
        shown = [
            each
            for each in self._record.register.all(Session)
            if subject in {"", each.subject} and time.time() < each.expires
        ]
        return iam.Sessions(
            sessions=[
                iam.SessionShown(
                    session=each.session,
                    subject=each.subject,
                    scopes=list(each.scopes),
                    audiences=list(each.audiences),
                    note=each.note,
                    opened=each.opened,
                    used=each.used,
                    expires=each.expires,
                )
                for each in sorted(shown, key=lambda each: -each.used)
            ]
        )

    async def revoke_token(self, request: iam.RevokeToken, caller: Identity) -> Decision[iam.Recorded]:
        """End a session of who asks."""
        session = self._record.register.find(Session, f"session/{request.token}")
        if session is None or session.subject != caller.name:
            raise RefusedError(
                RefusalCode.NOT_FOUND if session is None else RefusalCode.DENIED,
                f"{request.token} is no session of {caller.name} (kettle token list shows them); other tokens are ended by who"
                " has the level ADMINISTRATOR ([iam] administrators)",
            )
        return recorded(sessions.closed(session.session, "revoked", by=caller.name, now=time.time()))

    async def revoke_any_token(self, request: iam.RevokeToken, caller: Identity) -> Decision[iam.Recorded]:
        """End a session, or an access token, of anybody."""
        now, register = time.time(), self._record.register
        session = register.find(Session, f"session/{request.token}")
        if session is not None:
            return recorded(sessions.closed(session.session, "revoked", by=caller.name, now=now))
        if not self._settings.issuers and not _ID.fullmatch(request.token):
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"no token has such an id as {request.token}; kettle audit --what token.issued shows them",
            )
        expires = now + longest_life(self._settings)
        return recorded(
            sessions.revoked(register, request.token, "", expires=expires, by=caller.name, now=now)
        )


def longest_life(settings: IamSettings) -> float:
    """
    Seconds after which no token that there is now is good any more: an id does not say whether it is one of a person, of a job, of
    a program of HTCondor or of another issuer.
    """
    return max(
        settings.access_token_lifetime,
        settings.job_token_lifetime,
        settings.idtoken_lifetime or _FOR_EVER_S,
        _OF_OTHERS_S if settings.issuers else 0.0,
    )


def _person(caller: Identity) -> Known:
    """Who asks, with the levels that this takes; what else he may do takes another question."""
    return on_the_bus(caller.name, ())


def _administrator(caller: Identity) -> Known:
    """Who asks where only administrators may."""
    return on_the_bus(caller.name, (caller.name,))
