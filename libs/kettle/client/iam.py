"""What people and administrators ask of iam: join tokens, bans, tokens, and the record of all of it."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.auth.mapping.levels import Level
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import CommandRefusedError
from kettle.client.join_tokens import MadeJoinToken, iam_patience, new_secret
from kettle.client.own_machines import OwnMachinesClient
from kettle.client.rights import RightsClient
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import iam, job_credentials
from kettle_wire.commands.iam import (
    AuditEntries,
    BanShown,
    BeginSession,
    ClientShown,
    CreateJoinToken,
    IssueToken,
    JoinTokenShown,
    LiftBan,
    ListBans,
    ListClients,
    ListJoinTokens,
    ListTokens,
    ListWorkers,
    QueryAudit,
    RegisterClient,
    RemoveClient,
    RemoveWorker,
    RevokeJoinToken,
    RevokeToken,
    SessionMade,
    SessionShown,
    SetBan,
    TokenMade,
    WhoAmI,
    Whoami,
    WorkerShown,
)
from kettle_wire.commands.job_credentials import (
    Credentials,
    ListCredentials,
    RemoveCredential,
    StoreCredential,
)
from kettle_wire.events.iam import Joins
from kettle_wire.iam_http import REFRESH_PREFIX, join_token

_ADMINISTRATOR: Final = Level.ADMINISTRATOR.scope


class MadeSession(msgspec.Struct, frozen=True, kw_only=True):
    """A refresh token, which is shown once."""

    token: str
    made: SessionMade


class IdentityClient:
    """
    Asks iam. Secrets are made here, and only their SHA-256 is sent; administrators' commands are refused to others, with a
    `CommandRefusedError`.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    # -- machines ----------------------------------------------------------------------------------------------------

    async def create_join_token(
        self,
        *,
        joins: Joins = "worker",
        owner: str = "",
        group: str = "",
        lifetime: float = 1800.0,
        max_uses: int = 1,
    ) -> MadeJoinToken:
        """
        Let machines join; `owner`, `group`: whose jobs alone they run, `lifetime`: of the token, in seconds.
        """
        secret, hash_ = new_secret()
        request = CreateJoinToken(
            id=new_id(),
            hash=hash_,
            joins=joins,
            owner=owner,
            group=group,
            lifetime=lifetime,
            max_uses=max_uses,
        )
        made = await self._requests.ask(iam.CREATE_JOIN_TOKEN, request, patience=self._patience)
        return MadeJoinToken(token=join_token(made.token, secret, made.pin), made=made)

    async def join_tokens(self) -> list[JoinTokenShown]:
        """Those that can be used."""
        answer = await self._requests.ask(iam.LIST_JOIN_TOKENS, ListJoinTokens(), patience=self._patience)
        return answer.tokens

    async def revoke_join_token(self, token: str) -> None:
        """Withdraw a join token, by its id."""
        request = RevokeJoinToken(id=new_id(), token=token)
        await self._requests.ask(iam.REVOKE_JOIN_TOKEN, request, patience=self._patience)

    async def workers(self) -> list[WorkerShown]:
        """The machines that have joined by a token."""
        answer = await self._requests.ask(iam.LIST_WORKERS, ListWorkers(), patience=self._patience)
        return answer.workers

    async def remove_worker(self, worker: str) -> None:
        """Have the credential of a machine be invalid."""
        request = RemoveWorker(id=new_id(), worker=worker)
        await self._requests.ask(iam.REMOVE_WORKER, request, patience=self._patience)

    @property
    def own_machines(self) -> OwnMachinesClient:
        """What a person may do about machines that run the own jobs only."""
        return OwnMachinesClient(self._requests)

    # -- bans --------------------------------------------------------------------------------------------------------

    async def ban(self, whom: str, *, reason: str = "", lifetime: float = 0.0) -> None:
        """Let somebody in no more, for some seconds or (0) until it is lifted."""
        request = SetBan(id=new_id(), whom=whom, reason=reason, lifetime=lifetime)
        await self._requests.ask(iam.SET_BAN, request, patience=self._patience)

    async def unban(self, whom: str) -> None:
        """Let somebody in again."""
        await self._requests.ask(iam.LIFT_BAN, LiftBan(id=new_id(), whom=whom), patience=self._patience)

    async def bans(self) -> list[BanShown]:
        """Who is banned."""
        answer = await self._requests.ask(iam.LIST_BANS, ListBans(), patience=self._patience)
        return answer.bans

    # -- credentials for jobs ----------------------------------------------------------------------------------------

    async def store_credential(self, service: str, text: str, *, handle: str = "") -> None:
        """Keep a token of a service for one's jobs: the token, or the JSON of an OAuth answer."""
        request = StoreCredential(id=new_id(), service=service, handle=handle, text=text)
        await self._requests.ask(job_credentials.STORE_CREDENTIAL, request, patience=self._patience)

    async def remove_credential(self, service: str, *, handle: str = "") -> None:
        """Keep it no longer."""
        request = RemoveCredential(id=new_id(), service=service, handle=handle)
        await self._requests.ask(job_credentials.REMOVE_CREDENTIAL, request, patience=self._patience)

    async def credentials(self) -> Credentials:
        """One's own, and what could be stored."""
        return await self._requests.ask(
            job_credentials.LIST_CREDENTIALS, ListCredentials(), patience=self._patience
        )

    # -- clients -----------------------------------------------------------------------------------------------------

    async def register_client(
        self,
        client: str,
        *,
        owner: str,
        scopes: Sequence[str] = (),
        audiences: Sequence[str] = (),
        lifetime: float = 1200.0,
        exchanges: bool = False,
        replace: bool = False,
    ) -> str:
        """
        Let a program ask for tokens; its secret, which is shown once.  `replace`: one of this name gets other rules and another secret.
        """
        secret, hash_ = new_secret()
        request = RegisterClient(
            id=new_id(),
            client=client,
            hash=hash_,
            owner=owner,
            scopes=list(scopes),
            audiences=list(audiences),
            lifetime=lifetime,
            exchanges=exchanges,
            replace=replace,
        )
        await self._requests.ask(iam.REGISTER_CLIENT, request, patience=self._patience)
        return secret

    async def remove_client(self, client: str) -> None:
        """Let a program have no more tokens."""
        request = RemoveClient(id=new_id(), client=client)
        await self._requests.ask(iam.REMOVE_CLIENT, request, patience=self._patience)

    async def clients(self) -> list[ClientShown]:
        """The programs that may ask for tokens."""
        answer = await self._requests.ask(iam.LIST_CLIENTS, ListClients(), patience=self._patience)
        return answer.clients

    # -- tokens ------------------------------------------------------------------------------------------------------

    async def issue_token(
        self, *, scopes: Sequence[str] = (), audiences: Sequence[str] = (), lifetime: float = 1200.0
    ) -> TokenMade:
        """An access token for oneself; without scopes, one that is no administrator's."""
        request = IssueToken(scopes=list(scopes), audiences=list(audiences), lifetime=lifetime)
        endpoint = iam.ISSUE_ANY_TOKEN if _ADMINISTRATOR in scopes else iam.ISSUE_TOKEN
        return await self._requests.ask(endpoint, request, patience=self._patience)

    async def open_session(
        self, *, scopes: Sequence[str] = (), audiences: Sequence[str] = (), note: str = ""
    ) -> MadeSession:
        """A refresh token for oneself."""
        secret, hash_ = new_secret()
        request = BeginSession(
            id=new_id(), hash=hash_, scopes=list(scopes), audiences=list(audiences), note=note
        )
        endpoint = iam.OPEN_ANY_SESSION if _ADMINISTRATOR in scopes else iam.OPEN_SESSION
        made = await self._requests.ask(endpoint, request, patience=self._patience)
        return MadeSession(token=f"{REFRESH_PREFIX}.{made.session}.{secret}", made=made)

    async def sessions(self, *, everybody: bool = False) -> list[SessionShown]:
        """One's own sessions; those of everybody only for an administrator."""
        endpoint = iam.LIST_ALL_TOKENS if everybody else iam.LIST_TOKENS
        return (await self._requests.ask(endpoint, ListTokens(), patience=self._patience)).sessions

    async def revoke_token(self, token: str) -> None:
        """End a session, or an access token, by its id; those of others only for an administrator."""
        try:
            request = RevokeToken(id=new_id(), token=token)
            await self._requests.ask(iam.REVOKE_TOKEN, request, patience=self._patience)
        except CommandRefusedError as refusal:
            if refusal.code not in {RefusalCode.NOT_FOUND, RefusalCode.DENIED}:
                raise
            if not (await RightsClient(self._requests).may("iam.revoke_any_token")).allowed:
                raise
            request = RevokeToken(id=new_id(), token=token)
            await self._requests.ask(iam.REVOKE_ANY_TOKEN, request, patience=self._patience)

    # -- questions ---------------------------------------------------------------------------------------------------

    async def audit(self, wanted: QueryAudit) -> AuditEntries:
        """The newest entries of the record that match."""
        return await self._requests.ask(iam.QUERY_AUDIT, wanted, patience=self._patience, deadline=30.0)

    async def whoami(self) -> Whoami:
        """Who the pool takes us for."""
        return await self._requests.ask(iam.WHO_AM_I, WhoAmI(), patience=self._patience)

    @property
    def _patience(self) -> float:
        return iam_patience(self._requests)
