"""
The token of a person's login in that person's servers: the hub stores it as a credential in the pool's iam, enciphered there, and the
jobs find it in the file that `BEARER_TOKEN_FILE` names, as long as they run.

The hub renews the login, and stores each new token in the place of the one before; the refresh token stays with the hub.
"""

import asyncio
import hashlib
import logging
import time
from typing import Final
from urllib.parse import quote

from kettle.jupyterhub.errors import GatewayRefusedError, HubError
from kettle.jupyterhub.gateway_access import PoolGateway
from kettle.jupyterhub.person_tokens import TokenSource, due_at
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.rest.credentials import CredentialChanged, CredentialToStore

_AGAIN: Final = Backoff(first=0.5, longest=30.0)
_LONGEST_S: Final = 60.0
"""A token that does not say its end is looked at so often: the hub may have another one."""
_SHORTEST_S: Final = 0.2
_NOT_FOUND: Final = 404

_log: Final = logging.getLogger(__name__)


class LoginCredential:
    """The credential of one person, kept by one hub as long as servers run that have it."""

    def __init__(self, gateway: PoolGateway, token: TokenSource, *, service: str, hub: str) -> None:
        """
        `service`: what the credential is called, `hub`: the name of the hub, because a person may come by several.
        """
        handle = f"hub{hashlib.sha256(hub.encode()).hexdigest()[:12]}"
        self.needed: Final = f"{service}*{handle}"
        """How a job says that it wants it."""
        self._gateway = gateway
        self._token = token
        self._path = f"/v2/credentials/{quote(service)}"
        self._handle = {"handle": handle}
        self._stored = ""
        self._keeping: asyncio.Task[None] | None = None

    async def store(self) -> str:
        """Have the pool keep the token as it is now, unless it has it.  Raises HubError."""
        token = await self._token.token()
        if token != self._stored:
            await self._gateway.ask(
                "PUT",
                self._path,
                token,
                CredentialChanged,
                body=CredentialToStore(text=token),
                parameters=self._handle,
            )
            self._stored = token
        return token

    def keep(self) -> None:
        """From now on, until `end`."""
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.create_task(self._keep(), name=f"credential {self.needed}")

    async def _keep(self) -> None:
        waits = Waits(_AGAIN)
        while True:
            try:
                token = await self.store()
            except HubError as error:
                pause = waits.delay()
                _log.warning("the credential %s is not renewed yet: %s", self.needed, error)
            else:
                waits.reset()
                pause = min(max(due_at(token) - time.time(), _SHORTEST_S), _LONGEST_S)
            await asyncio.sleep(pause)

    async def end(self, *, remove: bool) -> None:
        """A server has ended; `remove`: no other one has the credential."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait({self._keeping})
            self._keeping = None
        if not remove:
            return
        self._stored = ""
        token = await self._token.token()
        try:
            await self._gateway.ask("DELETE", self._path, token, CredentialChanged, parameters=self._handle)
        except GatewayRefusedError as refusal:
            if refusal.status != _NOT_FOUND:
                raise
