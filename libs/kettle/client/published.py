"""
Services of running jobs, as programs reach them: a connection of bytes through the gateway, or a port of this machine that leads to one.

    access = await pool.gateway.access()
    reader, writer = await open_stream("12.0", "dask", access=access)

    async with forward("12.0", "dask", access=access) as port:
        ...  # 127.0.0.1:port is the service, for this machine
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from kettle.client.errors import ClientError, CommandRefusedError, PoolUnreachableError
from kettle.client.iam_http import IamAddress, IamHttp
from kettle.http.upgrades import Upgrade, number_in
from kettle_wire.rest.problem import Problem
from kettle_wire.rest.services import GET_SERVICES, LIST_SERVICES, JobServices, ServicesOfJobs

STREAM: Final = "kettle-stream"
"""What stands in `Upgrade`."""
_FRAMED: Final = "kettle-tunnel"
"""What stands there for frames, of which one stream is the connection."""
DIAL_S: Final = 30.0
"""Seconds until a gateway has answered."""
_BUFFER: Final = 1 << 20
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})

Reply = TypeVar("Reply", bound=msgspec.Struct)
Token = Callable[[], str | Awaitable[str]]
"""The token as it is now: those of people, accounts and jobs are renewed."""
Refused = Callable[[str], None]

_log: Final = logging.getLogger(__name__)


class StreamNotOpenedError(CommandRefusedError):
    """The gateway has not connected a service; the text says why."""

    def __init__(self, code: str, message: str, status: int, *, wait: float | None = None) -> None:
        super().__init__(code, message)
        self.status: Final = status
        """Of HTTP: 401, 403, 404 and 410 are the same at every try."""
        self.wait: Final = wait
        """Seconds after which another try may succeed; None: nobody has said so."""


class GatewayAccess:
    """Where a gateway is, and what is shown to it; it has no text, so that no log has the token."""

    def __init__(self, url: str, ca: str = "", token: str | Token = "") -> None:
        """
        `ca`: path, or the text in PEM, of the certificate of an authority besides those that the system knows.

        Raises ClientError: no secret may be sent to that address.
        """
        place = urlsplit(url)
        if not place.hostname or place.scheme not in {"http", "https"}:
            raise ClientError(f"{url} is no address of a gateway")
        if place.scheme == "http" and place.hostname not in _LOCAL:
            raise ClientError(
                f"{url} is no address to which a secret may be sent: it has to begin with https://"
            )
        self.url: Final = url.rstrip("/")
        self.ca: Final = ca
        self._token: Final = token
        self.host: Final = place.hostname
        self.authority: Final = place.netloc.rpartition("@")[2]
        self.port: Final = place.port or (443 if place.scheme == "https" else 80)
        self.path: Final = place.path.rstrip("/")
        self.encrypted: Final = place.scheme == "https"

    async def shown(self) -> str:
        """What is shown now; raises ClientError."""
        said = self._token if isinstance(self._token, str) else self._token()
        token = said if isinstance(said, str) else await said
        if not token.isascii() or not token.isprintable():
            raise ClientError("the token for the gateway has characters that no token has")
        return token

    def context(self) -> ssl.SSLContext | None:
        """What the gateway's certificate is checked with; None: it is on this machine, and has none."""
        if not self.encrypted:
            return None
        made = ssl.create_default_context()
        if "-----BEGIN" in self.ca:
            made.load_verify_locations(cadata=self.ca)
        elif self.ca:
            made.load_verify_locations(self.ca)
        return made


async def open_stream(
    job: str, service: str, *, access: GatewayAccess, limit: int = _BUFFER
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """
    A connection to a service of a running job; `job` as in 12.0 or 12.0@ACCESS_POINT.

    Each direction ends for itself.  TLS has no end of one direction, so over HTTPS the bytes are in frames, which have.

    Raises:
        StreamNotOpenedError: the gateway has not connected it, and says why.
        PoolUnreachableError: no gateway answers there.
    """
    if access.encrypted:
        from kettle.client.framed_streams import open_framed  # few connections are encrypted

        return await open_framed(
            service, lambda tunnel: _upgraded(job, service, access, _FRAMED, tunnel), limit=limit
        )
    reader = asyncio.StreamReader(limit=limit)
    onward = asyncio.StreamReaderProtocol(reader)
    transport = await _upgraded(job, service, access, STREAM, onward)
    return reader, asyncio.StreamWriter(transport, onward, reader, asyncio.get_running_loop())


async def _upgraded(
    job: str, service: str, access: GatewayAccess, protocol: str, onward: asyncio.Protocol
) -> asyncio.Transport:
    """
    A connection to a service in another protocol, which from now on is `onward`'s; raises what `open_stream` does.
    """
    token = await access.shown()
    path = f"{access.path}/v2/jobs/{quote(job, safe='.@')}/services/{quote(service, safe='')}/connect"
    request = (
        f"GET {path} HTTP/1.1\r\nHost: {access.authority}\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    )
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(DIAL_S):
            transport, upgrade = await loop.create_connection(
                lambda: Upgrade(
                    request.encode("ascii"),
                    onward=lambda: onward,
                    refused=_refusal,
                    broken=PoolUnreachableError,
                ),
                access.host,
                access.port,
                ssl=access.context(),
            )
            try:
                await upgrade.done
            except BaseException:
                transport.abort()
                raise
    except TimeoutError as error:
        raise PoolUnreachableError(
            f"the gateway at {access.url} has not answered within {DIAL_S:g} s"
        ) from error
    except OSError as error:
        raise PoolUnreachableError(f"the gateway at {access.url} cannot be reached: {error}") from error
    return transport


@asynccontextmanager
async def forward(
    job: str,
    service: str,
    port: int = 0,
    *,
    access: GatewayAccess,
    host: str = "127.0.0.1",
    refused: Refused = _log.warning,
) -> AsyncGenerator[int]:
    """
    Listen on a port of this machine (0: one that is free) that leads to a service, as long as the context lasts; yields the port.

    Who connects there connects in the name of who has opened it, so it listens on the loopback interface only, unless `host` says
    otherwise.  `refused` is told why a connection was not made.

    Raises OSError: the port is taken.
    """
    passing: set[asyncio.Task[None]] = set()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        passing.add(task)
        try:
            there = await open_stream(job, service, access=access)
            await passed(reader, writer, *there)
        except ClientError as error:
            refused(str(error))
        finally:
            passing.discard(task)
            writer.close()

    server = await asyncio.start_server(passed_on, host, port, limit=_BUFFER)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def passed(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    from_job: asyncio.StreamReader,
    to_job: asyncio.StreamWriter,
) -> None:
    """Pass bytes both ways until both directions have ended, or one of the connections has."""
    try:
        async with asyncio.TaskGroup() as both:
            from_person = both.create_task(_one_way(reader, to_job))
            await _one_way(from_job, writer)
            # The service has said all that it says, and listens no more where its side of the connection is over too.
            if not to_job.can_write_eof():
                from_person.cancel()
    except* OSError:
        pass  # one of the two has gone: that is the end of the other, and all that there is to say
    finally:
        to_job.close()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_BUFFER):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():  # TLS cannot end one direction alone: then the other one ends both
        writer.write_eof()


async def jobs_with_services(access: GatewayAccess) -> list[JobServices]:
    """The jobs whose services we may use, by the gateway that they have connected to; raises ClientError."""
    return (await ask_gateway(access, "GET", LIST_SERVICES.path, ServicesOfJobs)).jobs


async def services_of(job: str, access: GatewayAccess) -> JobServices:
    """The services of a job, where each is and who uses it; raises ClientError."""
    path = GET_SERVICES.path.replace("{id}", quote(job, safe=".@"))
    return await ask_gateway(access, "GET", path, JobServices)


async def ask_gateway(
    access: GatewayAccess, method: str, path: str, reply: type[Reply], document: bytes = b""
) -> Reply:
    """What a gateway answers to a question over HTTP; `document`: JSON that is sent. Raises ClientError."""
    http = IamHttp(IamAddress.of(access.url), access.context())
    token = await access.shown()
    status, body = await asyncio.to_thread(http.ask, method, path, {}, token, document=document)
    try:
        if status == 200:
            return msgspec.json.decode(body, type=reply)
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError as error:
        raise ClientError(f"{access.url} does not answer as a gateway does (status {status})") from error
    raise CommandRefusedError(problem.code, problem.detail)


def _refusal(status: int, head: bytes, body: bytes) -> Exception:
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        return PoolUnreachableError(f"what answers there is no gateway: its answer has the status {status}")
    wait = number_in(head, b"retry-after")
    return StreamNotOpenedError(problem.code, problem.detail, status, wait=float(wait) if wait else None)
