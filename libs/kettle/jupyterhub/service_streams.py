"""Connections to services of jobs, through the gateway: after one request they are bytes."""

import asyncio
import ssl
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from kettle.jupyterhub.errors import GatewayRefusedError, GatewayUnreachableError
from kettle_wire.rest.problem import Problem

_PROTOCOL: Final = "kettle-stream"
_WITHIN_S: Final = 20.0
_LARGEST_HEAD: Final = 64 << 10
_LARGEST_PROBLEM: Final = 64 << 10
_SWITCHED: Final = 101

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def open_service(url: str, tls: ssl.SSLContext | None, token: str, job: str, service: str) -> Stream:
    """
    A connection to a service; `url`: of the gateway, `job`: `CLUSTER.PROC@SCHEDD`.

    Raises:
        GatewayUnreachableError: the gateway does not answer, or the service cannot be reached now.
        GatewayRefusedError: it never will.
    """
    place = urlsplit(url)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        async with asyncio.timeout(_WITHIN_S):
            reader, writer = await asyncio.open_connection(
                place.hostname, port, ssl=tls if place.scheme == "https" else None, limit=_LARGEST_HEAD
            )
            try:
                path = f"{place.path.rstrip('/')}/v2/jobs/{quote(job, safe='@')}/services/{service}/connect"
                writer.write(
                    f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: Upgrade\r\nUpgrade: {_PROTOCOL}\r\n"
                    f"Authorization: Bearer {token}\r\n\r\n".encode("ascii")
                )
                await _switched(reader, url)
            except BaseException:
                writer.close()
                raise
            return reader, writer
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise GatewayUnreachableError(
            f"the gateway {url} does not answer ({type(error).__name__})"
        ) from error


async def _switched(reader: asyncio.StreamReader, url: str) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head[9:12]) if head[9:12].isdigit() else 0
    if status == _SWITCHED:
        return
    try:
        problem = msgspec.json.decode(await reader.read(_LARGEST_PROBLEM), type=Problem)
    except msgspec.MsgspecError:
        raise GatewayUnreachableError(f"{url} does not answer as a gateway does (status {status})") from None
    if status >= 500 or problem.code.startswith("service."):
        raise GatewayUnreachableError(problem.detail)
    raise GatewayRefusedError(status, problem.code, problem.detail)
