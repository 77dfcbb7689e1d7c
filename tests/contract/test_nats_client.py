"""
What we promise of nats-py's client over our transport, on a real server, and what we rely on in nats-py for it.

A new release of nats-py that does something else fails here, and not in a pool.
"""

import asyncio
import datetime as dt
import gc
import inspect
import ipaddress
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kettle.bus.encrypted_stream import EncryptedStreams
from kettle.bus.nats import NatsBus
from kettle.bus.nats_connection import NatsConnection
from kettle.bus.nats_driver import Client, Msg, Server, Transport
from kettle.bus.nats_transport import NatsClient, TcpTransport
from kettle.embedded.binaries import nats_server
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.servers.locations import Place
from kettle_wire.identity import daemon


def _url(place: Place) -> str:
    """Of one server, where there are several."""
    return place.addresses.nats_url.split(",")[0]


class _Counted(TcpTransport):
    """Counts its connections."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0

    async def connect(self, *args: object, **options: object) -> None:
        """As ever."""
        await super().connect(*args, **options)  # type: ignore[arg-type]  # whatever the client gives
        self.connections += 1


class _Entrance:
    """Stands before a server; turns away as many as it is told to, before they are greeted."""

    def __init__(self, url: str) -> None:
        self._host, _, port = url.removeprefix("nats://").rpartition(":")
        self._port = int(port)
        self.turn_away = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if self.turn_away:
            self.turn_away -= 1
            writer.close()
            await writer.wait_closed()
            return
        inner, outer = await asyncio.open_connection(self._host, self._port)
        self._writers += [writer, outer]
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass(reader, outer))
            both.create_task(_pass(inner, writer))

    def break_off(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.close()
        self._writers.clear()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()
    with suppress(ConnectionError):
        await target.wait_closed()


@asynccontextmanager
async def _connected(
    url: str, transport: TcpTransport, credentials: str, back: asyncio.Event | None = None
) -> AsyncGenerator[NatsClient]:
    async def returned() -> None:
        if back is not None:
            back.set()

    async def untold(_error: Exception) -> None:
        pass

    def ours_again(servers: list[Server], _info: dict[str, Any]) -> tuple[Server, float]:
        # A cluster has told of its other servers.
        return next(server for server in servers if server.uri.netloc == urlparse(url).netloc), 0.01

    client = NatsClient(transport)
    async with asyncio.timeout(PATIENCE_S):
        await client.connect(
            url,
            user_credentials=credentials or None,
            connect_timeout=int(PATIENCE_S),
            reconnected_cb=returned,
            error_cb=untold,
            reconnect_to_server_handler=ours_again,
            max_reconnect_attempts=-1,
        )
    try:
        yield client
    finally:
        await client.close()


async def _echoed(client: Client, data: bytes) -> bytes:
    """What comes back of a message to oneself."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[Msg] = loop.create_future()
    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, future=came)  # pyright: ignore[reportUnknownMemberType]
    async with asyncio.timeout(PATIENCE_S):
        await client.publish(inbox, data)
        message = await came
    await subscription.unsubscribe()
    return message.data


@pytest_asyncio.fixture
async def entrance(real: Place) -> AsyncIterator[tuple[_Entrance, str]]:
    """Before the real server, and where it is."""
    gate = _Entrance(_url(real))
    async with await asyncio.start_server(gate.meet, "127.0.0.1") as server:
        yield gate, f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        gate.break_off()


async def test_large_messages_come_through_our_transport(real: Place) -> None:
    """From the first connection on."""
    transport = _Counted()
    async with _connected(_url(real), transport, real.addresses.nats_credentials) as client:
        data = bytes(range(256)) * 4096
        assert data == await _echoed(client, data)
    assert 1 == transport.connections


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_no_socket_of_a_broken_greeting_is_left(real: Place, entrance: tuple[_Entrance, str]) -> None:
    """
    However often a server breaks off: each socket is closed when the next is opened, and the last connection serves.
    """
    gate, url = entrance
    back, transport = asyncio.Event(), _Counted()
    async with _connected(url, transport, real.addresses.nats_credentials, back) as client:
        gate.turn_away = 3
        gate.break_off()
        async with asyncio.timeout(PATIENCE_S):
            await back.wait()
        assert b"still" == await _echoed(client, b"still")
    assert (0, 5) == (gate.turn_away, transport.connections)
    gc.collect()  # what was forgotten says so now, and that fails the test


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_no_socket_is_left_by_who_gives_up_while_connecting(real: Place) -> None:
    """At whichever step that is."""
    for steps in range(40):
        transport = TcpTransport()
        client = NatsClient(transport)
        connecting = asyncio.ensure_future(
            client.connect(_url(real), user_credentials=real.addresses.nats_credentials or None)
        )
        for _ in range(steps):
            await asyncio.sleep(0)
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            await connecting
        if transport.used:
            await client.close()
    gc.collect()  # as above


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_who_gives_up_at_the_moment_of_the_connection_has_it_to_close(
    real: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the connection nor the giving up is forgotten."""
    opened, writers = asyncio.open_connection, list[asyncio.StreamWriter]()

    async def open_connection(*args: Any, **options: Any) -> Any:
        made = await opened(*args, **options)
        writers.append(made[1])
        connecting.cancel()
        return made

    monkeypatch.setattr(asyncio, "open_connection", open_connection)
    transport = TcpTransport()
    connecting = asyncio.ensure_future(transport.connect(urlparse(_url(real)), 0, PATIENCE_S))
    await asyncio.wait({connecting})
    assert connecting.cancelled()
    transport.close()
    await transport.wait_closed()
    assert [True] == [writer.is_closing() for writer in writers]
    gc.collect()  # as above


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
async def test_a_wait_that_is_given_up_leaves_a_connection_that_hears(real: Place, steps: int) -> None:
    """
    At whichever step a caller stops waiting for the server to know its subscriptions: later answers still come.
    """
    async with NatsConnection.open(
        _url(real),
        identity=daemon("test"),
        credentials=real.addresses.nats_credentials,
        name="test",
        patience=PATIENCE_S,
    ) as connection:
        waiting = asyncio.ensure_future(connection.settle())
        for _ in range(steps):
            await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        await connection.settle()
        assert b"heard" == await _echoed(connection.client, b"heard")


async def test_a_credential_that_cannot_be_read_is_what_is_told(real: Place, tmp_path: Path) -> None:
    """And not that a client that never began cannot be closed."""
    with pytest.raises(FileNotFoundError, match=r"nobody\.nk"):
        async with NatsBus.connect(
            _url(real),
            subjects=real.subjects,
            identity=daemon("test"),
            credentials=str(tmp_path / "nobody.nk"),
        ):
            pass


def _certificate(directory: Path) -> tuple[Path, Path]:
    """For this machine, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / "server.pem", directory / "server.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return certificate, secret


@pytest.mark.filterwarnings("error::ResourceWarning")
async def test_a_server_may_want_encryption(tmp_path: Path) -> None:
    """Then the connection is encrypted before anything of ours is said; large messages come through."""
    certificate, secret = _certificate(tmp_path)
    port = held_port()
    process = await asyncio.create_subprocess_exec(
        nats_server(), "--addr=127.0.0.1", f"--port={port}", "--tls", f"--tlscert={certificate}",
        f"--tlskey={secret}", stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        client = NatsClient(TcpTransport())

        async def untold(_error: Exception) -> None:
            pass

        async with asyncio.timeout(PATIENCE_S):
            await client.connect(
                f"tls://127.0.0.1:{port}", tls=trusted, error_cb=untold, reconnect_time_wait=0.05,  # type: ignore[arg-type]  # it may be a fraction
                max_reconnect_attempts=-1,
            )  # fmt: skip
        data = bytes(range(256)) * 3000
        assert data == await _echoed(client, data)
        await client.close()
    finally:
        process.terminate()
        await process.wait()
    gc.collect()  # as above


async def test_a_client_whose_encrypted_connection_is_lost_can_be_closed(tmp_path: Path) -> None:
    """
    nats-py closes the transport when the server goes, and writes what is left when the client is closed.
    """
    certificate, secret = _certificate(tmp_path)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, secret)
    hung_up = asyncio.Event()

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        hung_up.set()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=served) as server:
        port = server.sockets[0].getsockname()[1]
        transport = TcpTransport(EncryptedStreams(str(certificate)))
        async with asyncio.timeout(PATIENCE_S):
            await transport.connect(urlparse(f"tls://127.0.0.1:{port}"), 0, PATIENCE_S)
            await hung_up.wait()
            assert b"" == await transport.read(1)
            transport.close()
            transport.close()
            transport.write(b"PING\r\n")
            transport.writelines([b"PUB", b" x 0\r\n"])
            await transport.wait_closed()
            with pytest.raises(ConnectionError):
                await transport.drain()


def test_our_transport_is_all_that_nats_py_asks_of_one() -> None:
    """Our transport has the methods of theirs with their parameters, and no further one."""
    for name in Transport.__abstractmethods__:
        theirs, ours = getattr(Transport, name), getattr(TcpTransport, name)
        assert list(inspect.signature(theirs).parameters) == list(inspect.signature(ours).parameters), name
        assert inspect.iscoroutinefunction(theirs) == inspect.iscoroutinefunction(ours), name
    assert not TcpTransport.__abstractmethods__


def test_nats_py_offers_no_other_way_to_give_it_a_transport() -> None:
    """When it does, that is to be used instead of `NatsClient`."""
    assert not [name for name in inspect.signature(Client.connect).parameters if "transport" in name]
    assert not list(inspect.signature(Client).parameters)
