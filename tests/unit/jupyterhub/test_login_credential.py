"""
The token of a login in the servers of a person: stored before they are ordered, and again whenever it is renewed.
"""

import asyncio
from typing import Any, cast

from kettle.jupyterhub.errors import GatewayRefusedError, GatewayUnreachableError
from kettle.jupyterhub.gateway_access import PoolGateway
from kettle.jupyterhub.login_credential import LoginCredential
from kettle.testing.patience import PATIENCE_S
from kettle_wire.rest.credentials import CredentialToStore

from .test_servers import token


class Gateway:
    """What is stored, in order."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.error: Exception | None = None
        self.changed = asyncio.Event()
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    async def ask(self, method: str, path: str, token: str, reply: object, **said: Any) -> None:
        self.changed.set()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        self.asked.append((method, path, said["parameters"]))
        if method == "PUT":
            self.stored.append(cast("CredentialToStore", said["body"]).text)


class Logins:
    """Each token is over at once, so that the next one is due."""

    def __init__(self) -> None:
        self.given = 0

    async def token(self) -> str:
        self.given += 1
        return token(0, self.given)


async def test_each_new_token_takes_the_place_of_the_one_before() -> None:
    """Until the last server has ended; a gateway that is away for a moment gets it later."""
    gateway, logins = Gateway(), Logins()
    credential = LoginCredential(cast("PoolGateway", gateway), logins, service="cms", hub="here")
    service, _, handle = credential.needed.partition("*")
    assert "cms" == service
    await credential.store()
    gateway.error = GatewayUnreachableError("away")
    credential.keep()
    async with asyncio.timeout(PATIENCE_S):
        while len(gateway.stored) < 4:
            gateway.changed.clear()
            await gateway.changed.wait()
    assert sorted(set(gateway.stored)) == sorted(gateway.stored)
    await credential.end(remove=True)
    assert ("DELETE", "/v2/credentials/cms", {"handle": handle}) == gateway.asked[-1]
    gateway.error = GatewayRefusedError(404, "not_found", "there is none")
    await credential.end(remove=True)


async def test_hubs_of_one_person_store_their_own() -> None:
    """A hub that removes its credential leaves that of another one."""
    one, other = (
        LoginCredential(cast("PoolGateway", Gateway()), Logins(), service="cms", hub=hub)
        for hub in ("a", "b")
    )
    assert one.needed != other.needed
