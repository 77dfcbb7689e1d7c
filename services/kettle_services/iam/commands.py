"""What iam answers over the bus."""

import secrets
import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from kettle.bus.ports import BusError, RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle.terminal.nearest_names import did_you_mean
from kettle_services.iam.admissions import Pool
from kettle_services.iam.domain import bans, join_tokens, sessions
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import Known, explained, on_the_bus, whoami
from kettle_services.iam.domain.scopes import narrowed, narrowed_audiences
from kettle_services.iam.domain.state import Ban, ClientRules, JoinToken, Register, Session, Worker
from kettle_services.iam.grants import Grants, Wanted
from kettle_services.iam.ports import PoolMaster
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import iam
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.endpoint import Endpoint, Position
from kettle_wire.events import IdentityEvent
from kettle_wire.events.iam import BanSet, ClientRegistered, JoinTokenCreated, SessionOpened
from kettle_wire.identity import Identity

Changes = Sequence[tuple[str, IdentityEvent]]
_BY_STATUS: Final = {
    400: RefusalCode.UNACCEPTABLE,
    404: RefusalCode.NOT_FOUND,
    409: RefusalCode.REFUSED,
    503: RefusalCode.UNAVAILABLE,
}


def endpoint_of(action: str) -> Endpoint[Any, Any]:
    """The command that is called `role.verb`; raises Denied with the nearest name if there is none."""
    known = {f"{each.role}.{each.verb}": each for each in ENDPOINTS}
    if action not in known:
        raise Denied(
            Code.ACTION_UNKNOWN, f"there is no command {action}{did_you_mean(action, known)}", status=404
        )
    return known[action]


class Handlers:
    """Decides the commands of administrators and people."""

    def __init__(
        self,
        record: Record,
        grants: Grants,
        pool: Pool,
        settings: IamSettings,
        *,
        administrators: Callable[[], Collection[str]],
        open_to_machines: Callable[[], None],
        master: PoolMaster,
    ) -> None:
        """`open_to_machines` raises Denied if no machine could join."""
        self._master = master
        self._record: Final = record
        self._grants = grants
        self._pool = pool
        self._settings = settings
        self._administrators = administrators
        self._open_to_machines = open_to_machines

    @property
    def _register(self) -> Register:
        return self._record.register

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        pipeline = CommandPipeline(self._record, administrators=self._administrators)
        return [
            pipeline.command(iam.CREATE_JOIN_TOKEN, self.create_join_token),
            pipeline.query(iam.LIST_JOIN_TOKENS, self.list_join_tokens),
            pipeline.command(iam.REVOKE_JOIN_TOKEN, self.revoke_join_token),
            pipeline.query(iam.LIST_WORKERS, self.list_workers),
            pipeline.command(iam.REMOVE_WORKER, self.remove_worker),
            pipeline.command(iam.LEAVE, self.leave),
            pipeline.command(iam.SET_BAN, self.set_ban),
            pipeline.command(iam.LIFT_BAN, self.lift_ban),
            pipeline.query(iam.LIST_BANS, self.list_bans),
            pipeline.command(iam.REGISTER_CLIENT, self.register_client),
            pipeline.command(iam.REMOVE_CLIENT, self.remove_client),
            pipeline.query(iam.LIST_CLIENTS, self.list_clients),
            pipeline.command(iam.OPEN_SESSION, self.open_session),
            Served(iam.ISSUE_TOKEN, self.issue_token, self._administrators),
            pipeline.query(iam.LIST_TOKENS, self.list_tokens),
            pipeline.command(iam.REVOKE_TOKEN, self.revoke_token),
            pipeline.query(iam.QUERY_AUDIT, self.query_audit),
            pipeline.query(iam.WHO_AM_I, self.who_am_i),
            pipeline.query(iam.EXPLAIN, self.explain),
        ]

    # -- machines ----------------------------------------------------------------------------------------------------

    async def create_join_token(
        self, request: iam.CreateJoinToken, caller: Identity
    ) -> Decision[iam.JoinTokenMade]:
        """Let machines join."""
        now = time.time()
        with _refusing():
            self._open_to_machines()
        if request.joins == "schedd" and request.owner:
            raise RefusedError(
                RefusalCode.UNACCEPTABLE, "an access point is no one owner's: leave the owner out"
            )
        event = JoinTokenCreated(
            token=secrets.token_hex(6),
            hash=request.hash,
            joins=request.joins,
            owner=request.owner,
            expires=now + request.lifetime,
            max_uses=request.max_uses,
            by=caller.name,
            at=now,
        )

        def reply(position: Position) -> iam.JoinTokenMade:
            return iam.JoinTokenMade(
                token=event.token,
                pin=self._pool.pin,
                url=self._pool.url,
                expires=event.expires,
                position=position,
            )

        return Decision(reply, [(join_tokens.stream(event.token), event)])

    async def list_join_tokens(self, request: iam.ListJoinTokens, caller: Identity) -> iam.JoinTokens:
        """Those that can be used."""
        now = time.time()
        usable = [
            each
            for each in self._register.all(JoinToken)
            if not each.revoked and now < each.expires and len(each.uses) < each.max_uses
        ]
        return iam.JoinTokens(
            tokens=[
                iam.JoinTokenShown(
                    token=each.token,
                    joins=each.joins,
                    owner=each.owner,
                    by=each.by,
                    created=each.created,
                    expires=each.expires,
                    max_uses=each.max_uses,
                    used=[use.name for use in each.uses],
                )
                for each in sorted(usable, key=lambda each: (each.expires, each.token))
            ]
        )

    async def revoke_join_token(
        self, request: iam.RevokeJoinToken, caller: Identity
    ) -> Decision[iam.Recorded]:
        """Withdraw a join token; `not_found`."""
        with _refusing():
            return _recorded(
                join_tokens.revoked(self._register, request.token, by=caller.name, now=time.time())
            )

    async def list_workers(self, request: iam.ListWorkers, caller: Identity) -> iam.Workers:
        """The machines that have joined."""
        workers = sorted(self._register.all(Worker), key=lambda each: each.worker)
        return iam.Workers(workers=[iam.WorkerShown(**msgspec.structs.asdict(each)) for each in workers])

    async def remove_worker(self, request: iam.RemoveWorker, caller: Identity) -> Decision[iam.Recorded]:
        """
        Have the credential of a machine be invalid; `not_found`, or `unavailable`: nobody could tell the server.
        """
        return await self._removed(request.worker, by=caller.name)

    async def leave(self, request: iam.Leave, caller: Identity) -> Decision[iam.Recorded]:
        """A machine leaves by itself; refused as `remove_worker` is."""
        del request
        return await self._removed(caller.access_point or caller.name, by=caller.name)

    async def _removed(self, worker: str, *, by: str) -> Decision[iam.Recorded]:
        with _refusing():
            left = join_tokens.left(self._register, worker, by=by, now=time.time())
        known = self._register.find(Worker, f"worker/{worker}")
        if known is not None:
            try:
                if known.joins == "schedd":
                    await self._master.forget(known.worker)
                await self._master.cut_off(known.joins, known.key)
            except BusError as error:
                raise RefusedError(
                    RefusalCode.UNAVAILABLE,
                    f"{worker} was not removed, for its connection could not be ended: {error}",
                ) from error
        return _recorded(left)

    # -- bans --------------------------------------------------------------------------------------------------------

    async def set_ban(self, request: iam.SetBan, caller: Identity) -> Decision[iam.Recorded]:
        """Let somebody in no more."""
        now = time.time()
        until = now + request.lifetime if request.lifetime else 0.0
        event = BanSet(whom=request.whom, reason=request.reason, until=until, by=caller.name, at=now)
        return _recorded(bans.banned(self._register, event))

    async def lift_ban(self, request: iam.LiftBan, caller: Identity) -> Decision[iam.Recorded]:
        """Let somebody in again; `not_found`."""
        with _refusing():
            return _recorded(bans.lifted(self._register, request.whom, by=caller.name, now=time.time()))

    async def list_bans(self, request: iam.ListBans, caller: Identity) -> iam.Bans:
        """Who is banned."""
        now = time.time()
        banned = sorted(self._register.all(Ban), key=lambda each: each.whom)
        return iam.Bans(
            bans=[
                iam.BanShown(**msgspec.structs.asdict(each))
                for each in banned
                if not each.until or now < each.until
            ]
        )

    # -- clients -----------------------------------------------------------------------------------------------------

    async def register_client(self, request: iam.RegisterClient, caller: Identity) -> Decision[iam.Recorded]:
        """Let a program ask for tokens."""
        event = ClientRegistered(
            client=request.client,
            hash=request.hash,
            owner=request.owner,
            scopes=request.scopes,
            audiences=request.audiences,
            lifetime=request.lifetime,
            exchanges=request.exchanges,
            by=caller.name,
            at=time.time(),
        )
        return _recorded(sessions.registered(event))

    async def remove_client(self, request: iam.RemoveClient, caller: Identity) -> Decision[iam.Recorded]:
        """Let a program have no more tokens; `not_found`."""
        with _refusing():
            return _recorded(
                sessions.removed(self._register, request.client, by=caller.name, now=time.time())
            )

    async def list_clients(self, request: iam.ListClients, caller: Identity) -> iam.Clients:
        """The programs that may ask for tokens; nobody is shown a secret."""
        clients = sorted(self._register.all(ClientRules), key=lambda each: each.client)
        return iam.Clients(
            clients=[
                iam.ClientShown(
                    client=each.client,
                    owner=each.owner,
                    scopes=list(each.scopes),
                    audiences=list(each.audiences),
                    lifetime=each.lifetime,
                    exchanges=each.exchanges,
                    by=each.by,
                    at=each.at,
                )
                for each in clients
            ]
        )

    # -- tokens ------------------------------------------------------------------------------------------------------

    def _person(self, caller: Identity) -> Known:
        return on_the_bus(caller.name, self._administrators())

    @property
    def _audiences(self) -> tuple[str, ...]:
        return (self._pool.url, *self._settings.audiences)

    async def open_session(self, request: iam.BeginSession, caller: Identity) -> Decision[iam.SessionMade]:
        """Give a person a refresh token."""
        now, person = time.time(), self._person(caller)
        with _refusing():
            require_welcome(self._register, *person.names, now=now)
            usual = [scope for scope in person.scopes if not scope.endswith("ADMINISTRATOR")]
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
            changes = sessions.opened(self._register, event)

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
        """Give a person an access token, which is stored nowhere."""
        wanted = Wanted(scopes=request.scopes, audiences=request.audiences, lifetime=request.lifetime)
        with _refusing():
            return await self._grants.for_person(self._person(caller), self._audiences, wanted)

    async def list_tokens(self, request: iam.ListTokens, caller: Identity) -> iam.Sessions:
        """One's own sessions; of an administrator's wish those of all."""
        self._require_own(caller, own=not request.everybody, what="the sessions of others")
        shown = [
            each
            for each in self._register.all(Session)
            if (request.everybody or each.subject == caller.name) and time.time() < each.expires
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
        """End a session, or an access token."""
        now, register = time.time(), self._register
        session = register.find(Session, f"session/{request.token}")
        if session is not None:
            self._require_own(caller, own=session.subject == caller.name, what="the session of somebody else")
            return _recorded(sessions.closed(session.session, "revoked", by=caller.name, now=now))
        self._require_own(caller, own=False, what=f"the access token {request.token}")
        expires = now + self._settings.access_token_lifetime
        return _recorded(
            sessions.revoked(register, request.token, "", expires=expires, by=caller.name, now=now)
        )

    def _require_own(self, caller: Identity, *, own: bool, what: str) -> None:
        if not own and caller.name not in self._administrators():
            raise RefusedError(
                RefusalCode.DENIED,
                f"{caller.name} is no administrator of this iam, and {what} is not yours ([iam] administrators)",
            )

    # -- questions ---------------------------------------------------------------------------------------------------

    async def query_audit(self, request: iam.QueryAudit, caller: Identity) -> iam.AuditEntries:
        """The newest entries of the record that match."""
        return await self._record.audit(request)

    async def who_am_i(self, request: iam.WhoAmI, caller: Identity) -> iam.Whoami:
        """Who the pool takes the caller for."""
        person = self._person(caller)
        return whoami(person, self.ban_of(person))

    async def explain(self, request: iam.ExplainAccess, caller: Identity) -> iam.AccessExplained:
        """Whether the caller may send a command."""
        person = self._person(caller)
        with _refusing():
            return explained(person, request.action, endpoint_of(request.action), self.ban_of(person))

    def ban_of(self, known: Known) -> str:
        """Why somebody is banned; empty: he is not."""
        try:
            require_welcome(self._register, *known.names, now=time.time())
        except Denied as ban:
            return str(ban)
        return ""


def _recorded(changes: Changes) -> Decision[iam.Recorded]:
    return Decision(lambda position: iam.Recorded(position=position), changes)


@contextmanager
def _refusing() -> Generator[None]:
    try:
        yield
    except Denied as refusal:
        code = _BY_STATUS.get(refusal.status, RefusalCode.DENIED)
        raise RefusedError(code, str(refusal)) from refusal
