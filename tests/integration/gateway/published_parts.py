"""
A gateway's side of published services without a pool: people, jobs and tunnels that a test makes up, and real connections.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast

from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import Principal
from kettle.pki.contexts import client_context
from kettle.published.errors import StreamCode
from kettle.published.frames import PATH, PROTOCOL, Announcement
from kettle.published.relay import CHUNK, Relay, join
from kettle.published.services import Service, parse_services
from kettle.published.sharing import parse_sharing
from kettle.published.ticket import Ticket, TicketRefusedError
from kettle.published.tunnel import Tunnel
from kettle.published.tunnel_stream import TunnelStream
from kettle.runtime.http_server import serving
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.published.http_proxy import HttpProxy
from kettle_services.gateway.published.job_lookup import JobLookup, MayBe, QueuedJob, anywhere
from kettle_services.gateway.published.landing import Landing
from kettle_services.gateway.published.member_access import MemberAccess
from kettle_services.gateway.published.service_access import ServiceAccess
from kettle_services.gateway.published.service_requests import ServiceRequests
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.published.tunnels import Tunnels
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.application import Front, RequestLimits
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.origins import Origins
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

JOB: Final = JobId(12, 0)
FAR: Final = 4e9


class MadeUpPersons:
    """Tokens that are names, as long as they are in `known`; each with groups."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, ...]] = {"alice": (), "bob": (), "carol": ("atlas",), "root": ()}
        self.administrators = {"root"}
        self.readers: set[str] = set()

    async def of(self, token: str, address: str) -> Person:
        del address
        if token not in self.known:
            raise RequestRefused(401, ProblemCode.TOKEN_ABSENT, "show a token")
        principal = Principal(method="SCITOKENS", text=token, groups=self.known[token])
        return Person(principal, Mapped(owner=token, domain="pool"), Credential(token=token))

    async def holding(self, credential: Credential, address: str) -> Person:
        return await self.of(credential.token or credential.account, address)

    def may(self, person: Person, level: Level) -> bool:
        if level is Level.ADMINISTRATOR:
            return person.name in self.administrators
        return person.name not in self.readers

    def require(self, person: Person, level: Level) -> None:
        if not self.may(person, level):
            raise RequestRefused(403, ProblemCode.NOT_PERMITTED, "only READ")


class MadeUpJobs(JobLookup):
    """Jobs that a test has put here."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, JobId], QueuedJob] = {}
        self.ended: set[JobId] = set()

    def put(
        self, job: JobId = JOB, owner: str = "alice", shared_with: str = "", schedd: str = "s", **more: Any
    ) -> None:
        self.jobs[schedd, job] = QueuedJob(
            job=job,
            schedd=schedd,
            owner=owner,
            status=more.get("status", JobStatus.RUNNING),
            shared_with=parse_sharing(shared_with),
            described=parse_services(more.get("described", "web:8080/http")),
            hold_reason=more.get("hold_reason", ""),
        )

    async def access_point(self, job: JobId, schedd: str, may_be: MayBe = anywhere) -> str:
        if job in self.ended:
            return "s"
        found = [name for name, each in self.jobs if each == job and schedd in {"", name} and may_be(name)]
        if not found:
            raise RequestRefused(404, ProblemCode.NOT_FOUND, f"there is no job {job}")
        return found[0]

    async def job(self, job: JobId, schedd: str, *, fresh: bool = False) -> QueuedJob:
        found = self.jobs.get((schedd, job))
        if found is None:
            raise RequestRefused(410, ProblemCode.NOT_FOUND, f"job {job} has ended")
        return found


class MadeUpTickets:
    """Tickets are texts `JOB/ATTEMPT`, or `JOB/ATTEMPT/EXPIRES`."""

    async def check(self, text: str) -> Ticket:
        try:
            job, attempt, *expires = text.split("/")
            return Ticket(
                schedd="s",
                job=JobId.parse(job),
                attempt=int(attempt),
                owner="alice",
                expires=float(expires[0]) if expires else FAR,
            )
        except ValueError:
            raise TicketRefusedError("token.malformed", "it is no ticket") from None


class Gateway:
    """All of it, at `port`."""

    def __init__(self, patience: float = 30.0) -> None:
        self.persons = MadeUpPersons()
        self.jobs = MadeUpJobs()
        self.tunnels = Tunnels(100)
        self.uses = Uses(1000, 100)
        limits = RequestLimits(rate=1e5, burst=1e5, all_rate=1e5, all_burst=1e5, proxies=frozenset())
        front = Front(cast("Any", self.persons), limits)
        self.access = ServiceAccess(
            front, self.jobs, self.tunnels, cast("Any", self.persons), MemberAccess(self.jobs, "", "")
        )
        origins, passage = Origins("", ()), Passage()
        self.requests = ServiceRequests(
            self.access,
            HttpProxy(patience, passage),
            passage,
            self.uses,
            limits,
            origins,
            lambda _request: "",
        )
        self.application = web.Application(middlewares=[front.as_problems])
        Landing(self.tunnels, MadeUpTickets(), limits).add_to(self.application)

        async def browser(_request: web.Request, _address: object) -> web.StreamResponse:
            raise RequestRefused(401, ProblemCode.TOKEN_ABSENT, "show a token")

        self.requests.add_to(self.application, browser)
        self.port = 0


@asynccontextmanager
async def gateway(
    patience: float = 30.0, encryption: ssl.SSLContext | None = None
) -> AsyncGenerator[Gateway]:
    made = Gateway(patience)

    async def end(_application: web.Application) -> None:
        made.uses.end_all()
        made.tunnels.close_all("the test is over")

    made.application.on_shutdown.append(end)
    watching = asyncio.create_task(made.uses.watch())
    async with serving(made.application, "127.0.0.1", 0, encryption) as port:
        made.port = port
        yield made
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def ask(port: int, text: str | bytes) -> bytes:
    """Send bytes, and read until the gateway closes, or for an answer to `Connection: close`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode("latin-1") if isinstance(text, str) else text)
    with suppress(ConnectionError):
        await writer.drain()
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reader.read()
    finally:
        await gone(writer)


async def gone(writer: asyncio.StreamWriter) -> None:
    """Close a connection."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def upgraded(
    port: int, path: str, protocol: str, token: str, ca: str = ""
) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
    """The head of the answer to a request for another protocol, and the connection; encrypted with `ca`."""
    encryption = client_context(ca) if ca else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=encryption)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    return head, reader, writer


@asynccontextmanager
async def job_side(
    port: int,
    services: str,
    *,
    ticket: str = "12.0/1",
    refuses: StreamCode | None = None,
    greets: bytes = b"",
    breaks: bool = False,
    ca: str = "",
) -> AsyncGenerator[Tunnel]:
    """
    The machine's end of a tunnel: it connects streams to ports of this machine; `greets`: it has no ports, and says this at once;
    `breaks`: it has none, and breaks each stream off when it has connected it.
    """
    known = {each.name: each for each in parse_services(services)}
    tasks: set[asyncio.Task[None]] = set()
    relays: list[Relay] = []
    buffer = bytearray(CHUNK)

    async def connect(stream: TunnelStream) -> None:
        if refuses is not None:
            stream.refuse(refuses, "it is refused here")
            return
        if breaks:
            stream.accept(asyncio.Protocol())
            stream.abort()
            return
        if greets:
            stream.accept(asyncio.Protocol())
            stream.write(greets)
            return
        service: Service | None = known.get(stream.service)
        assert service is not None, stream.service
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, "127.0.0.1", service.port
            )
        except OSError:
            stream.refuse(StreamCode.NOTHING_LISTENS, f"nothing listens on port {service.port}")
            return
        transport.pause_reading()
        stream.accept(asyncio.Protocol())
        relays.append(join(stream, transport, buffer))

    def answer(stream: TunnelStream) -> None:
        task = asyncio.create_task(connect(stream))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    tunnel = Tunnel(opens=False, answer=answer)
    head, _, writer = await upgraded(port, PATH, PROTOCOL, ticket, ca)
    assert head.startswith(b"HTTP/1.1 101 "), head
    transport = writer.transport
    transport.set_protocol(tunnel)
    tunnel.connection_made(transport)
    tunnel.announce(Announcement(services=tuple(known.values())))
    try:
        yield tunnel
    finally:
        tunnel.close("the test is over")
        await tunnel.ended()
        for each in relays:
            await each.done


@asynccontextmanager
async def raw_server(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncGenerator[int]:
    """A server of bytes, at the port that it yields."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@asynccontextmanager
async def web_server(application: web.Application) -> AsyncGenerator[int]:
    """A server of HTTP, at the port that it yields."""
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def until(condition: Callable[[], bool]) -> None:
    """Wait until it is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.01)
