"""Programs that come to a made-up gateway by TLS, and what people give them to show."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from kettle.pki.certificates import make_request
from kettle.pki.contexts import Listener
from kettle.published.tls_transport import PIECE
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.domain.published_names import ServiceDomain
from kettle_services.gateway.published.service_access import Unserved
from kettle_services.gateway.published.service_certificates import ServiceCertificates
from kettle_services.gateway.published.service_listener import ServiceListener
from kettle_services.gateway.published.service_tls import serve_names
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.rest.application import RequestLimits
from kettle_wire.jobs import JobId
from kettle_wire.rest.service_certificates import MakeServiceCertificate, ServiceCertificate

from .published_parts import JOB, Gateway, gateway

DOMAIN: Final = "tcp.example.org"
_RECORD: Final = 16 * 1024


class Shown(SimpleNamespace):
    """What a program shows: paths of a certificate and its key."""

    certificate: str
    key: str


class TlsGateway:
    """A gateway that takes programs by TLS, at `port`."""

    def __init__(self, of_http: Gateway, directory: Path, limits: RequestLimits | None = None) -> None:
        self.of_http = of_http
        self.directory = directory
        self.domain = ServiceDomain(DOMAIN)
        self.certificates = ServiceCertificates(directory / "gateway", "pool", None)
        shown = self.certificates.issue(f"*.{DOMAIN}")
        (directory / "shown.pem").write_bytes(shown.certificate + shown.key)
        (directory / "ca.pem").write_text(self.certificates.certificate)
        self.unserved: list[Unserved] = []
        of_http.access.refused = self.unserved.append
        context = Listener(
            certificate=str(directory / "shown.pem"), key=str(directory / "shown.pem")
        ).context()
        serve_names(context, self.domain, self.certificates.certificate)
        self.listener = ServiceListener(
            context,
            self.certificates,
            of_http.access,
            cast("Any", of_http.persons),
            Passage(),
            of_http.uses,
            limits or calm(),
            most=1000,
            proxies=frozenset(),
        )
        self.port = 0

    def name(self, service: str = "raw", job: JobId = JOB) -> str:
        return self.domain.name(service, job, "s")

    async def shown(self, person: str = "alice", seconds: float = 3600.0) -> Shown:
        """What the gateway has made for who shows a token."""
        key, request = make_request("anybody")
        made = await self.certificates.make(
            cast(
                "Any",
                SimpleNamespace(
                    person=await self.of_http.persons.of(person, ""),
                    body=MakeServiceCertificate(request=request.decode(), seconds=seconds),
                ),
            )
        )
        reply: ServiceCertificate = made.reply
        return kept(self.directory, reply.certificate.encode(), key)

    def context(self, shown: Shown | None) -> ssl.SSLContext:
        """What a program goes by that shows this."""
        made = ssl.create_default_context(cafile=str(self.directory / "ca.pem"))
        if shown is not None:
            made.load_cert_chain(shown.certificate, shown.key)
        return made


def calm() -> RequestLimits:
    return RequestLimits(rate=1e5, burst=1e5, all_rate=1e5, all_burst=1e5, proxies=frozenset())


def kept(directory: Path, certificate: bytes, key: bytes) -> Shown:
    """A certificate and its key, in files."""
    number = len(list(directory.glob("shown-*.pem")))
    path = directory / f"shown-{number}.pem"
    path.write_bytes(certificate + key)
    return Shown(certificate=str(path), key=str(path))


@asynccontextmanager
async def tls_gateway(directory: Path, limits: RequestLimits | None = None) -> AsyncGenerator[TlsGateway]:
    async with gateway() as of_http:
        made = TlsGateway(of_http, directory, limits)
        of_http.jobs.put()
        async with made.listener.listening("127.0.0.1", 0) as port:
            made.port = port
            yield made


class Program:
    """A program with TLS of its own, which ends each direction for itself."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        context: ssl.SSLContext,
        name: str | None,
    ) -> None:
        self.reader, self.writer = reader, writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        if name is None:
            context.check_hostname = False
        self._engine = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self.ended = False

    async def shake(self) -> None:
        while True:
            try:
                self._engine.do_handshake()
            except ssl.SSLWantReadError:
                await self._more()
            else:
                break
        self._flush()

    def send(self, data: bytes) -> None:
        self._engine.write(data)
        self._flush()

    def say_end(self) -> None:
        """That nothing more is sent; what comes is still read."""
        with suppress(ssl.SSLWantReadError):
            self._engine.unwrap()
        self._flush()

    async def read(self, most: int = -1) -> bytes:
        """
        Until the end of TLS, or so many bytes; raises ssl.SSLError (what the alert says), or ConnectionError: there is no end.
        """
        got = bytearray()
        while most < 0 or len(got) < most:
            try:
                piece = self._engine.read(_RECORD if most < 0 else most - len(got))
            except ssl.SSLWantReadError:
                await self._more()
                continue
            except ssl.SSLZeroReturnError:
                piece = b""
            if not piece:
                self.ended = True
                break
            got += piece
        return bytes(got)

    async def _more(self) -> None:
        self._flush()
        async with asyncio.timeout(PATIENCE_S):
            data = await self.reader.read(PIECE)
        if not data:
            raise ConnectionResetError("the other side has closed the connection")
        self._incoming.write(data)

    def _flush(self) -> None:
        self.writer.write(self._outgoing.read())


@asynccontextmanager
async def program(
    made: TlsGateway, shown: Shown | None, name: str | None = "", context: ssl.SSLContext | None = None
) -> AsyncGenerator[Program]:
    """One that has connected; `name`: empty: that of the service, None: it says none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
    came = Program(reader, writer, context or made.context(shown), made.name() if name == "" else name)
    try:
        await came.shake()
        yield came
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def said(
    made: TlsGateway, shown: Shown | None, name: str | None = "", context: ssl.SSLContext | None = None
) -> str:
    """How a program is refused that says something at once: the alert, or `closed`, or what it has read."""
    try:
        async with program(made, shown, name, context) as came:
            came.send(b"anybody there?")
            data = await came.read()
    except ssl.SSLError as error:
        return error.reason or str(error)
    except ConnectionError:
        return "broken"
    return data.decode() or "closed"
