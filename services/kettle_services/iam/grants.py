"""
Access tokens: for people whom the bus knows, for refresh tokens, for clients, and for narrower tokens than
somebody has.
"""

import secrets
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.auth.tokens.issuing.derived import Grant
from kettle_services.iam.domain import sessions
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.job_tokens import JOB_SESSION
from kettle_services.iam.domain.join_tokens import digest
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import Known, by_scopes
from kettle_services.iam.domain.scopes import narrowed, narrowed_audiences
from kettle_services.iam.domain.sessions import Reused
from kettle_services.iam.domain.state import ClientRules
from kettle_services.iam.ports import TokenKeys
from kettle_services.iam.record import Record
from kettle_wire.commands.iam import TokenMade
from kettle_wire.events import IdentityEvent
from kettle_wire.events.iam import TokenIssued

_OF_WLCG: Final = ("storage.", "compute.")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    scopes: Sequence[str] = ()
    audiences: Sequence[str] = ()
    lifetime: float = 0.0
    """Seconds; 0: the longest."""
    address: str = ""


class Renewed(msgspec.Struct, frozen=True):
    """An access token, and the refresh token for the next one."""

    made: TokenMade
    refresh: str


class Grants:
    """Gives access tokens; each method returns after the commit."""

    def __init__(self, record: Record, keys: TokenKeys, *, issuer: str, lifetime: float) -> None:
        """`lifetime`: the longest life of an access token, in seconds."""
        self._record: Final = record
        self._keys = keys
        self._issuer = issuer
        self._lifetime = lifetime

    def verified(self, token: str, *, now: float) -> Known:
        """
        Who shows an access token of this pool.

        Raises:
            Denied: it is not valid, or he is banned.
        """
        shown = self._keys.verified(token, self._issuer, now=now)
        if now >= shown.expires:
            raise Denied(Code.TOKEN_EXPIRED, "the token has expired", status=401)
        sessions.require_in_force(self._record.register, shown.id, shown.claims, ours=True)
        known = Known(
            subject=shown.subject,
            method="TOKEN",
            issuer=shown.issuer,
            rights=by_scopes(shown.scopes),
            scopes=shown.scopes,
            audiences=shown.audience,
            expires=float(shown.expires),
            token=shown.id,
            client=str(shown.claims.get("client_id", "")),
            job=JOB_SESSION in shown.claims,
            session=str(shown.claims.get(sessions.SESSION, "")),
            parents=sessions.parents_of(shown.claims),
        )
        require_welcome(self._record.register, *known.names, now=now)
        return known

    async def for_person(self, known: Known, audiences: Sequence[str], wanted: Wanted) -> TokenMade:
        """An access token for somebody whom the bus knows; `audiences`: for whom it may be."""
        now = time.time()
        require_welcome(self._record.register, *known.names, now=now)
        usual = [scope for scope in known.scopes if scope != Level.ADMINISTRATOR.scope]
        scopes = narrowed(wanted.scopes or usual, known.scopes, whose=known.subject)
        chosen = narrowed_audiences(
            wanted.audiences or [self._issuer], audiences, whose="a token of this pool"
        )
        token, event = self._made(known.subject, scopes, chosen, wanted, grant="bus", now=now)
        await self._record.record([(f"issued/{known.subject}", event)])
        return token

    async def for_client(self, client: ClientRules, wanted: Wanted) -> TokenMade:
        """`client_credentials`."""
        now = time.time()
        self._welcome_client(client, now)
        scopes = narrowed(wanted.scopes, client.scopes, whose=f"the client {client.client}")
        audiences = narrowed_audiences(
            wanted.audiences, client.audiences or (self._issuer,), whose=f"the client {client.client}"
        )
        token, event = self._made(
            client.owner,
            scopes,
            audiences,
            msgspec.structs.replace(
                wanted, lifetime=min(wanted.lifetime or client.lifetime, client.lifetime)
            ),
            grant="client_credentials",
            client=client.client,
            now=now,
        )
        await self._record.record([(f"issued/{client.owner}", event)])
        return token

    async def for_refresh_token(self, text: str, wanted: Wanted) -> Renewed:
        """`refresh_token`: with the access token comes the next refresh token, and this one is over."""
        now = time.time()
        try:
            session = sessions.session_of(self._record.register, sessions.parse(text), now=now)
        except Reused as reused:
            await self._record.record(
                sessions.closed(reused.session, "reused", by=wanted.address or "somebody", now=now)
            )
            raise
        require_welcome(self._record.register, f"user:{session.subject}", now=now)
        scopes = narrowed(wanted.scopes, session.scopes, whose="the session")
        audiences = narrowed_audiences(wanted.audiences, session.audiences, whose="the session")
        secret = secrets.token_urlsafe(32)
        token, event = self._made(
            session.subject,
            scopes,
            audiences,
            wanted,
            grant="refresh_token",
            session=session.session,
            now=now,
        )
        await self._record.record(
            [
                *sessions.renewed(session, digest(secret), address=wanted.address, now=now),
                (f"issued/{session.subject}", event),
            ]
        )
        return Renewed(token, sessions.refresh_token(session.session, secret))

    async def for_token(self, token: str, client: ClientRules | None, wanted: Wanted) -> TokenMade:
        """
        Token exchange (RFC 8693): a narrower token than the one that is shown, which ends no later, and with its session.

        A client that is registered for it may ask for other audiences, of its own list, and gets no more than its own scopes.
        """
        now = time.time()
        known = self.verified(token, now=now)
        if known.job:  # what came of it would outlive the attempt, and would not be known as a job's
            raise Denied(
                Code.CLIENT_EXCHANGE, "the token of a job is exchanged for no other token", status=400
            )
        if len(known.parents) >= sessions.MOST_PARENTS:
            raise Denied(
                Code.CLIENT_EXCHANGE,
                f"this token was exchanged {sessions.MOST_PARENTS} times already: exchange an earlier one",
                status=400,
            )
        scopes = narrowed(wanted.scopes, known.scopes, whose="the token")
        audiences = list(known.audiences)
        if client is not None:
            self._welcome_client(client, now)
            if not client.exchanges:
                raise Denied(
                    Code.CLIENT_EXCHANGE, f"the client {client.client} may not exchange tokens", status=400
                )
            if client.scopes:
                narrowed(scopes, client.scopes, whose=f"the client {client.client}")
            audiences += client.audiences
        chosen = narrowed_audiences(
            wanted.audiences or known.audiences, audiences, whose="a token that is made from this one"
        )
        longest = min(known.expires - now, client.lifetime if client is not None else known.expires - now)
        made, event = self._made(
            known.subject,
            scopes,
            chosen,
            msgspec.structs.replace(wanted, lifetime=min(wanted.lifetime or longest, longest)),
            grant="token_exchange",
            client=client.client if client is not None else known.client,
            session=known.session,
            parents=(*known.parents, known.token),
            now=now,
        )
        await self._record.record([(f"issued/{known.subject}", event)])
        return made

    def _welcome_client(self, client: ClientRules, now: float) -> None:
        require_welcome(self._record.register, f"client:{client.client}", f"user:{client.owner}", now=now)

    def _made(
        self,
        subject: str,
        scopes: Sequence[str],
        audiences: Sequence[str],
        wanted: Wanted,
        *,
        grant: str,
        now: float,
        client: str = "",
        session: str = "",
        parents: Sequence[str] = (),
    ) -> tuple[TokenMade, IdentityEvent]:
        id_ = secrets.token_urlsafe(16)
        allowed = Grant(
            issuer=self._issuer,
            subject=subject,
            audience=tuple(audiences),
            scopes=tuple(scopes),
            lifetime=int(min(wanted.lifetime or self._lifetime, self._lifetime)),
            profile="at+jwt",
            claims={
                "client_id": client or "kettle",
                **({sessions.SESSION: session} if session else {}),
                **({sessions.PARENTS: list(parents)} if parents else {}),
                **_profile(scopes),
            },
        )
        token = self._keys.issue(allowed, id_, now=now)
        expires = int(now) + allowed.lifetime
        event = TokenIssued(
            token=id_,
            subject=subject,
            client=client,
            session=session,
            grant=grant,
            scopes=list(scopes),
            audiences=list(audiences),
            expires=float(expires),
            address=wanted.address,
            at=now,
        )
        made = TokenMade(
            token=token, id=id_, scopes=list(scopes), audiences=list(audiences), expires=float(expires)
        )
        return made, event


def _profile(scopes: Sequence[str]) -> dict[str, str]:
    """
    What says whose scopes they are: storage looks for those of the WLCG profile only in tokens that name it.
    """
    return {"wlcg.ver": "1.0"} if any(scope.startswith(_OF_WLCG) for scope in scopes) else {}
