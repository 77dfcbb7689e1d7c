"""
Credentials that people store for their jobs: taken from them, and handed to nobody but the jobs that are theirs.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle.jobs.needed_tokens import OURS
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.domain import credentials
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import StoredCredential
from kettle_services.iam.record import Record
from kettle_services.iam.sealed_files import SealedError, SealedFiles
from kettle_services.iam.settings import OAuthService
from kettle_services.iam.token_exchange import AccessToken, ExchangeError, TokenExchange
from kettle_wire.commands import job_credentials
from kettle_wire.commands.iam import Recorded
from kettle_wire.events.iam import CredentialStored
from kettle_wire.identity import Identity
from kettle_wire.job_tokens import JobToken, NeededToken

_Key = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]
"""Owner, service, handle, scopes, audiences."""
_STILL_GOOD: Final = 0.5
"""An access token is given to further jobs until so much of its life has passed."""

_log: Final = logging.getLogger(__name__)


class _Kept(msgspec.Struct, frozen=True):
    token: AccessToken
    until: float
    """On `time.monotonic`."""


class StoredCredentials:
    """
    Of everybody; `lifetime`: seconds after which a job asks again for a token that does not say its end.
    """

    def __init__(
        self, record: Record, files: SealedFiles, services: Mapping[str, OAuthService], *, lifetime: float
    ) -> None:
        self._record = record
        self._files = files
        self._services = services
        self._exchange = TokenExchange(services)
        self._lifetime = lifetime
        self._kept: dict[_Key, _Kept] = {}
        self._locks: dict[tuple[str, str, str], asyncio.Lock] = {}
        """A refresh token may be good for one exchange, so that two at a time would end it."""
        self._removals: set[asyncio.Task[None]] = set()
        """Files that are being removed."""

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(job_credentials.STORE_CREDENTIAL, self.store),
            pipeline.command(job_credentials.REMOVE_CREDENTIAL, self.remove),
            pipeline.query(job_credentials.LIST_CREDENTIALS, self.list),
        ]

    async def store(self, request: job_credentials.StoreCredential, caller: Identity) -> Decision[Recorded]:
        """Keep one of the caller's; `unacceptable`."""
        now, register = time.time(), self._record.register
        with refusing():
            require_welcome(register, f"user:{caller.name}", now=now)
            read = credentials.read(request.text)
            event = CredentialStored(
                owner=caller.name,
                service=request.service,
                handle=request.handle,
                kind=read.kind,
                by=caller.name,
                at=now,
            )
            changes = credentials.stored(register, event, ours=OURS, exchanged=self._services)
        async with self._lock(caller.name, request.service, request.handle):
            await asyncio.to_thread(
                self._files.put, caller.name, _name(request.service, request.handle), read.text
            )
            self._forget(caller.name, request.service, request.handle)
        return recorded(changes)

    async def remove(self, request: job_credentials.RemoveCredential, caller: Identity) -> Decision[Recorded]:
        """Keep one no longer; `not_found`."""
        with refusing():
            changes = credentials.removed(
                self._record.register, caller.name, request.service, request.handle, now=time.time()
            )

        def remove() -> None:
            task = asyncio.create_task(self._remove(caller.name, request.service, request.handle))
            self._removals.add(task)
            task.add_done_callback(self._removals.discard)

        return Decision(lambda position: Recorded(position=position), changes, effect=remove)

    async def _remove(self, owner: str, service: str, handle: str) -> None:
        """Unless it has been stored again meanwhile."""
        async with self._lock(owner, service, handle):
            if self._record.register.find(StoredCredential, credentials.stream(owner, service, handle)):
                return
            self._forget(owner, service, handle)
            try:
                await asyncio.to_thread(self._files.remove, owner, _name(service, handle))
            except OSError:
                _log.exception("a credential that is to be kept no longer is still on the disk")

    async def list(
        self, request: job_credentials.ListCredentials, caller: Identity
    ) -> job_credentials.Credentials:
        """The caller's own."""
        own = [each for each in self._record.register.all(StoredCredential) if each.owner == caller.name]
        return job_credentials.Credentials(
            credentials=[
                job_credentials.CredentialShown(
                    service=each.service, handle=each.handle, kind=each.kind, stored=each.at
                )
                for each in sorted(own, key=lambda each: (each.service, each.handle))
            ],
            services={name: service.sign_in for name, service in self._services.items()},
            ours=list(OURS),
        )

    async def token(self, needed: NeededToken, owner: str) -> JobToken:
        """
        What a job of `owner` gets.

        Raises:
            Denied: he has stored nothing, or it is worth nothing any more; status 503: perhaps later.
        """
        known = credentials.found(self._record.register, owner, needed.service, needed.handle)
        try:
            if known.kind == "token":
                text = await asyncio.to_thread(self._files.get, owner, _name(needed.service, needed.handle))
                left = credentials.life_left(text, self._lifetime, now=time.time())
                return JobToken(name=needed.name, text=text, left=left)
            token = await self._exchanged(needed, owner)
        except SealedError as error:
            raise Denied(Code.TOKEN_UNKNOWN, str(error), status=404) from error
        except ExchangeError as error:
            status = 503 if error.passing else 400
            raise Denied(Code.TOKEN_UNKNOWN, str(error), status=status) from error
        return JobToken(name=needed.name, text=token.text, left=token.ends - time.monotonic())

    async def _exchanged(self, needed: NeededToken, owner: str) -> AccessToken:
        key = (owner, needed.service, needed.handle, tuple(needed.scopes), tuple(needed.audiences))
        async with self._lock(owner, needed.service, needed.handle):
            kept = self._kept.get(key)
            if kept is not None and time.monotonic() < kept.until:
                return kept.token
            name = _name(needed.service, needed.handle)
            refresh = await asyncio.to_thread(self._files.get, owner, name)
            token = await self._exchange.access_token(needed, refresh)
            if token.refresh:  # the one before may be worth nothing from now on
                await asyncio.to_thread(self._files.put, owner, name, token.refresh)
            now = time.monotonic()
            self._kept = {each: kept for each, kept in self._kept.items() if now < kept.until}
            self._kept[key] = _Kept(token, now + (token.ends - now) * _STILL_GOOD)
            return token

    def _lock(self, owner: str, service: str, handle: str) -> asyncio.Lock:
        return self._locks.setdefault((owner, service, handle), asyncio.Lock())

    def _forget(self, owner: str, service: str, handle: str) -> None:
        self._kept = {key: kept for key, kept in self._kept.items() if key[:3] != (owner, service, handle)}


def _name(service: str, handle: str) -> str:
    return f"{service}.{handle}"
