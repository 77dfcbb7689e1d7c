"""
The REST interface of a pool's gateway, as a hub uses it: each request shows the token of the person whose server it is about.
"""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from kettle.client.errors import ClientError
from kettle.client.published import GatewayAccess, StreamNotOpenedError, open_stream
from kettle.jupyterhub.errors import GatewayRefusedError, GatewayUnreachableError
from kettle_wire.rest.problem import Problem

T = TypeVar("T")
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_WITHIN_S: Final = 30.0
_SILENT_S: Final = 60.0
"""A stream has at least a comment every 15 seconds."""
_LARGEST_LINE: Final = 1 << 20
_FINAL: Final = frozenset({401, 403, 404, 410})
"""Statuses with which a connection to a service is refused for good."""
_PASSES: Final = frozenset({408, 429})
"""Refusals that say nothing of what was asked for; so do all from 500 on."""


class PoolGateway:
    """Where a gateway is; no connection is kept."""

    def __init__(self, url: str, ca: str = "") -> None:
        """
        `url`: its address, `ca`: the path of the certificate, in PEM, of the authority of its certificate; empty: those that this
        machine trusts.
        """
        self.url: Final = url.rstrip("/")
        self._ca = ca
        self._tls: ssl.SSLContext | None = None

    async def ask(
        self,
        method: str,
        path: str,
        token: str,
        reply: type[T],
        *,
        body: object = None,
        data: bytes | None = None,
        parameters: Mapping[str, str] | None = None,
        key: str = "",
    ) -> T:
        """
        One request; `key`: its Idempotency-Key.

        Raises:
            GatewayUnreachableError: there is no answer, or none that says anything of what was asked for.
            GatewayRefusedError: the answer is no.
        """
        headers = {"Idempotency-Key": key} if key else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(body)
        limit = aiohttp.ClientTimeout(total=_WITHIN_S)
        async with self._asked(method, path, token, limit, headers, data, parameters) as answer:
            return self._decoded(await answer.read(), reply)

    def _decoded(self, read: bytes, reply: type[T]) -> T:
        try:
            return msgspec.json.decode(read or b"null", type=reply)
        except msgspec.MsgspecError as error:
            raise GatewayUnreachableError(
                f"{self.url} does not answer as a gateway does ({error})"
            ) from error

    async def follow(self, path: str, token: str, *, after: int = 0) -> AsyncGenerator[tuple[str, Any]]:
        """
        The events of a stream from a place on, each with its name and its data, until the gateway ends it.

        Raises:
            GatewayUnreachableError: there is no stream, or not any more.
            GatewayRefusedError: there is none for this person.
        """
        limit = aiohttp.ClientTimeout(total=None, sock_connect=_WITHIN_S, sock_read=_SILENT_S)
        parameters = {"after": str(after)}
        async with self._asked("GET", path, token, limit, {}, None, parameters) as answer:
            name, data = "", ""
            try:
                async for raw in answer.content:
                    line = raw.decode("utf-8", "replace").rstrip("\r\n")
                    if line.startswith("event:"):
                        name = line.removeprefix("event:").strip()
                    elif line.startswith("data:"):
                        data += line.removeprefix("data:").strip()
                    elif not line and data:
                        yield name, json.loads(data)
                        name, data = "", ""
            except ValueError as error:
                raise GatewayUnreachableError(f"{self.url} does not answer as a gateway does") from error

    @asynccontextmanager
    async def _asked(
        self,
        method: str,
        path: str,
        token: str,
        limit: aiohttp.ClientTimeout,
        headers: Mapping[str, str],
        data: bytes | None,
        parameters: Mapping[str, str] | None,
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        shown = {"Authorization": f"Bearer {token}", **headers}
        try:
            async with (
                aiohttp.ClientSession(timeout=limit, headers=shown, read_bufsize=_LARGEST_LINE) as session,
                session.request(
                    method,
                    self.url + path,
                    data=data,
                    params=parameters,
                    allow_redirects=False,
                    ssl=self.tls if urlsplit(self.url).scheme == "https" else False,
                ) as answer,
            ):
                if answer.status >= 300:
                    raise await self._refusal(answer)
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise GatewayUnreachableError(
                f"the gateway {self.url} does not answer ({type(error).__name__})"
            ) from error

    async def connect(self, job: str, service: str, token: str) -> Stream:
        """A connection to a service of a job; raises GatewayUnreachableError and GatewayRefusedError."""
        try:
            return await open_stream(job, service, access=_Access(self, token))
        except StreamNotOpenedError as error:
            if error.status in _FINAL:
                raise GatewayRefusedError(error.status, error.code, str(error)) from error
            raise GatewayUnreachableError(str(error)) from error
        except ClientError as error:
            raise GatewayUnreachableError(str(error)) from error

    async def _refusal(self, answer: aiohttp.ClientResponse) -> GatewayRefusedError | GatewayUnreachableError:
        try:
            problem = msgspec.json.decode(await answer.read(), type=Problem)
        except msgspec.MsgspecError:
            return GatewayUnreachableError(
                f"{self.url} does not answer as a gateway does (status {answer.status})"
            )
        if answer.status >= 500 or answer.status in _PASSES:
            return GatewayUnreachableError(f"the gateway {self.url} cannot answer now: {problem.detail}")
        return GatewayRefusedError(answer.status, problem.code, problem.detail)

    @property
    def tls(self) -> ssl.SSLContext:
        """With which its certificate is checked."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cafile=self._ca or None)
        return self._tls


class _Access(GatewayAccess):
    """
    As a client of services wants it; certificates of authorities are read once, and not for each connection.
    """

    def __init__(self, gateway: PoolGateway, token: str) -> None:
        super().__init__(gateway.url, token=token)
        self._gateway = gateway

    def context(self) -> ssl.SSLContext | None:
        """See GatewayAccess."""
        return self._gateway.tls if self.encrypted else None
