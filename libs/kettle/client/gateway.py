"""Where the gateway's pages are, and addresses by which a browser signs in there."""

import asyncio
import time
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.transport import Requests
from kettle.client.errors import ClientError, CommandRefusedError
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import (
    MAKE_ACCESS,
    MAKE_LOGIN_LINK,
    QUERY_ADDRESS,
    GatewayAddress,
    MakeAccess,
    MakeLoginLink,
    QueryAddress,
)
from kettle_wire.rest.browser_sessions import MAKE_LINK, Link
from kettle_wire.rest.problem import Problem

if TYPE_CHECKING:
    from kettle.client.published import GatewayAccess

_PATIENCE_S: Final = 10.0
_SOON_OVER_S: Final = 120.0
"""A token that is good for no longer is not begun with."""


class GatewayClient:
    """Asks the gateway."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def address(self) -> GatewayAddress:
        """Where it is, if it serves pages."""
        patience = min(self._requests.transport.patience, _PATIENCE_S)
        return await self._requests.ask(QUERY_ADDRESS, QueryAddress(), patience=patience)

    async def access(self) -> "GatewayAccess":
        """
        What reaches services of jobs through it (`kettle.client.published`).

        Raises:
            CommandRefusedError: the gateway publishes none, or does not let us in.
        """
        from kettle.client.connections.credentials import token_of
        from kettle.client.published import GatewayAccess

        pool = self._requests.pool
        if not pool.token:
            made = await self._requests.ask(MAKE_ACCESS, MakeAccess())

            async def token() -> str:
                nonlocal made
                if made.expires - time.time() < _SOON_OVER_S:
                    made = await self._requests.ask(MAKE_ACCESS, MakeAccess())
                return made.token

            return GatewayAccess(made.url, made.ca, token)
        url = (await self.address()).url
        if not url:
            raise CommandRefusedError(
                RefusalCode.UNSUPPORTED,
                "the pool's gateway publishes no services of jobs (rest of [gateway] in kettle.toml)",
            )
        return GatewayAccess(url, pool.ca, lambda: token_of(pool))

    async def login_link(self, url: str) -> str:
        """
        An address by which a browser signs in as us, once and within a minute; `url`: where the gateway is.

        Who has a token shows it to the gateway itself, because the session is to end with it.

        Raises:
            CommandRefusedError: the gateway does not let us in.
        """
        if self._requests.pool.token:
            return await asyncio.to_thread(self._link_by_token, url)
        return (await self._requests.ask(MAKE_LOGIN_LINK, MakeLoginLink())).url

    def _link_by_token(self, url: str) -> str:
        from kettle.client.connections.credentials import token_of
        from kettle.client.iam_http import IamAddress, IamHttp, trusting

        pool = self._requests.pool
        gateway = IamHttp(IamAddress.of(url), trusting(pool.ca))
        status, body = gateway.ask(MAKE_LINK.method, MAKE_LINK.path, {}, token_of(pool))
        try:
            if status == 200:
                return url.rstrip("/") + msgspec.json.decode(body, type=Link).path
            problem = msgspec.json.decode(body, type=Problem)
        except msgspec.MsgspecError as error:
            raise ClientError(f"{url} does not answer as a gateway does (status {status})") from error
        raise CommandRefusedError(problem.code, problem.detail)
