"""
Who insists on encryption sends nothing to a server that does not prove itself: no secret, no request, no name.
"""

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.nats import NatsBus
from kettle.bus.open_servers import open_servers
from kettle.bus.ports import BusUnavailableError, Served
from kettle.bus.single_request import UnusualError, ask_once
from kettle.embedded import EmbeddedNats
from kettle.embedded.binaries import nats_server, setpriv
from kettle.embedded.nats_listener import NatsListener
from kettle.embedded.ports import listens
from kettle.pki.authority_files import AuthorityFiles, Kept
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import EVERYTHING
from kettle.testing.servers.held_port import held_port
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("secret")
_INFO = b'INFO {"server_id":"x","version":"2.15.0","max_payload":1048576,"headers":true,"nonce":"abc"}\r\n'
_CLIENT_HELLO = b"\x16\x03"
"""The first octets of TLS: a record of a handshake."""


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    data: str


ByHand = Callable[[str], Awaitable[str]]
ECHO = Endpoint("test", "echo", Text, Text, callers=tuple(Caller), repeat=Repeat.HARMLESS)


async def echo(request: Text, caller: Identity) -> Text:
    return Text(caller.name + request.data)


def now() -> datetime:
    return datetime.now(UTC)


class Trial:
    """An authority, another that calls itself the same, and certificates for the loopback interface."""

    def __init__(self, directory: Path) -> None:
        self.files = AuthorityFiles(directory / "ours")
        self.other = AuthorityFiles(directory / "other")
        self.ca = str(self.files.make("Trial", now=now()).certificate)
        self.other_ca = str(self.other.make("Trial", now=now()).certificate)
        self.good = self.files.issue(["127.0.0.1"], "server", now=now())
        self.forged = self.other.issue(["127.0.0.1"], "server", now=now())
        self.elsewhere = self.files.issue(["bus.example.org"], "server", now=now())
        self.expired = self.files.issue(["old", "127.0.0.1"], "server", now=now() - timedelta(days=9), days=3)
        self.early = self.files.issue(["new", "127.0.0.1"], "server", now=now() + timedelta(days=9))


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(tmp_path_factory.mktemp("pki"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory, trial: Trial) -> AsyncIterator[EmbeddedNats]:
    """An encrypted server of ours."""
    directory = tmp_path_factory.mktemp("nats")
    shown = NatsListener(certificate=trial.good.certificate, key=trial.good.key, ca=Path(trial.ca))
    async with EmbeddedNats(
        directory / "nats", credentials=directory / "keys", permissions=EVERYTHING, listener=shown
    ) as running:
        yield running


@pytest.fixture(scope="module")
def seed(server: EmbeddedNats) -> str:
    return str(server.credentials("test"))


def connecting(
    url: str, ca: str, seed: str = "", patience: float = PATIENCE_S
) -> AbstractAsyncContextManager[NatsBus]:
    return NatsBus.connect(
        url, subjects=SUBJECTS, identity=daemon("gateway"), credentials=seed, patience=patience, ca=ca
    )


async def refused(url: str, ca: str, seed: str = "") -> str:
    """Why both ways of a client do not speak to a server."""
    with pytest.raises(UnusualError) as short:
        await asyncio.to_thread(
            ask_once, url, ECHO, "one", Text("hidden"),
            subjects=SUBJECTS, identity=user("eve"), credentials=seed, ca=ca, within=PATIENCE_S,
        )  # fmt: skip
    with pytest.raises(BusUnavailableError) as lasting:
        async with connecting(url, ca, seed):
            pytest.fail("connected")
    assert str(lasting.value) in str(short.value)
    return str(lasting.value)


async def test_both_ways_of_a_client_are_encrypted(server: EmbeddedNats, trial: Trial, seed: str) -> None:
    """
    A connection that lasts and one for a single request; the authority is enough, whatever the URL says.
    """
    for url in (server.url, server.url.replace("tls:", "nats:")):
        async with connecting(url, trial.ca, seed) as bus:
            await bus.serve("test", "one", [Served(ECHO, echo)], version="1.0.0")
            answer = await asyncio.to_thread(
                ask_once, url, ECHO, "one", Text("!"),
                subjects=SUBJECTS, identity=user("eve"), credentials=seed, ca=trial.ca, within=PATIENCE_S,
            )  # fmt: skip
            assert Text("eve!") == answer
    assert [] == open_servers(server.url, trial.ca)


async def test_a_server_of_another_authority_is_refused(
    server: EmbeddedNats, trial: Trial, seed: str
) -> None:
    """
    Also if it has the same name; and without an authority of the pool's, the system does not know it either.
    """
    said = await refused(server.url, trial.other_ca, seed)
    assert f"is not signed by the authority in {trial.other_ca}" in said
    assert "ca.pem from its administrator" in said
    assert "nats_ca" in await refused(server.url, "", seed)


async def test_who_does_not_know_that_a_server_encrypts_hears_what_is_missing(
    server: EmbeddedNats, seed: str
) -> None:
    """The server asks for it; whom to trust has to be said, and no one waits for that to change."""
    with pytest.raises(BusUnavailableError, match=r"name the pool's own authority \(nats_ca\)"):
        async with connecting(server.url.replace("tls:", "nats:"), "", seed):
            pytest.fail("connected")


async def test_an_authority_that_cannot_be_read_is_named(
    server: EmbeddedNats, trial: Trial, seed: str, tmp_path: Path
) -> None:
    assert "No such file" in await refused(server.url, str(tmp_path / "none.pem"), seed)
    assert "holds no certificates" in await refused(server.url, str(trial.good.key), seed)


def showing(shown: Kept) -> ssl.SSLContext:
    """What a listener goes by that shows this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown.certificate, shown.key)
    return context


class Listening:
    """A server that is none of ours, and all that it was sent."""

    def __init__(self, greeting: bytes = b"", context: ssl.SSLContext | None = None) -> None:
        self._greeting = greeting
        self._context = context
        self._guests: list[asyncio.StreamWriter] = []
        self.heard: list[bytes] = []
        self.understood: list[bytes] = []
        """What it was sent inside of TLS."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", ssl=self._context)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for guest in self._guests:
            guest.close()
        await self._server.wait_closed()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet, and keep what comes until the client goes."""
        self._guests.append(writer)
        try:
            writer.write(self._greeting)
            while data := await reader.read(65536):
                (self.understood if self._context else self.heard).append(data)
        except OSError:
            pass  # a client that does not trust us breaks off
        finally:
            writer.close()


@pytest.mark.parametrize("scheme", ["tls", "nats"])
async def test_a_false_server_in_the_clear_is_sent_the_beginning_of_tls_and_nothing_else(
    trial: Trial, seed: str, scheme: str
) -> None:
    """It says that it needs no encryption, and hears neither a name nor a key nor a request."""
    async with Listening(_INFO) as false:
        said = await refused(f"{scheme}://{false.place}", trial.ca, seed)
        assert f"{false.place} does not speak TLS" in said
        assert "nothing was sent" in said
    assert false.heard
    assert all(each.startswith(_CLIENT_HELLO) for each in false.heard), false.heard
    assert not any(b"CONNECT" in each or b"eve" in each or b"hidden" in each for each in false.heard)


async def test_a_server_that_says_it_encrypts_and_does_not_hears_nothing(trial: Trial, seed: str) -> None:
    """What is said in the clear, and put behind it, is not believed."""
    lies = _INFO.replace(b'"nonce"', b'"tls_required":true,"nonce"') + b"+OK\r\nPONG\r\n" * 3
    async with Listening(lies) as false:
        with pytest.raises(BusUnavailableError):
            async with connecting(f"tls://{false.place}", trial.ca, seed, patience=1.0):
                pytest.fail("connected")
        with pytest.raises(UnusualError):
            await asyncio.to_thread(
                ask_once, f"tls://{false.place}", ECHO, "one", Text("hidden"),
                subjects=SUBJECTS, identity=user("eve"), credentials=seed, ca=trial.ca, within=1.0,
            )  # fmt: skip
    assert all(each.startswith(_CLIENT_HELLO) for each in false.heard), false.heard


async def test_what_is_no_server_of_nats_is_refused(trial: Trial, seed: str) -> None:
    """A web server, for example, which answers everything in the clear."""
    async with Listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as false:
        assert "does not speak TLS" in await refused(f"tls://{false.place}", trial.ca, seed)


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        ("forged", "is not signed by the authority in"),
        ("elsewhere", "is for other names: connect by one of the names that it has"),
        ("expired", "has expired: its administrator renews it (kettle pki renew)"),
        ("early", "is not valid yet: compare the clocks"),
    ],
)
async def test_a_false_certificate_gets_nothing(trial: Trial, seed: str, shown: str, sentence: str) -> None:
    """Of another authority, for other names, too late or too early: nothing comes through."""
    async with Listening(context=showing(getattr(trial, shown))) as false:
        assert sentence in await refused(f"tls://{false.place}", trial.ca, seed)
    assert [] == false.understood


async def test_one_server_of_several_that_is_false_is_passed_over(
    server: EmbeddedNats, trial: Trial, seed: str
) -> None:
    """
    The next one is tried, and it is the right one; a list with one encrypted server has none in the clear.
    """
    async with Listening(_INFO) as false:
        urls = f"nats://{false.place},{server.url}"
        async with connecting(urls, trial.ca, seed) as bus:
            assert bus.connected
        with pytest.raises(BusUnavailableError):
            async with connecting(urls, "", seed):  # the system knows neither
                pytest.fail("connected")
    assert all(each.startswith(_CLIENT_HELLO) for each in false.heard)


@pytest_asyncio.fixture
async def by_hand(trial: Trial, tmp_path: Path) -> AsyncIterator[ByHand]:
    """Servers with a site's own configuration; called with lines of the part `tls`, gives the URL."""
    processes: list[asyncio.subprocess.Process] = []

    async def start(lines: str) -> str:
        port = held_port()
        config = tmp_path / f"{port}.conf"
        config.write_text(
            f'listen: "127.0.0.1:{port}"\n'
            f'tls {{ cert_file: "{trial.good.certificate}", key_file: "{trial.good.key}"\n{lines} }}\n'
        )
        processes.append(
            await asyncio.create_subprocess_exec(
                *(setpriv(), "--pdeathsig=TERM", "--", str(nats_server()), "--config", str(config)),
                stderr=asyncio.subprocess.DEVNULL,
            )
        )
        async with asyncio.timeout(PATIENCE_S):
            while not listens(port):
                await asyncio.sleep(0.01)
        return f"tls://127.0.0.1:{port}"

    yield start
    for process in processes:
        process.terminate()
        await process.wait()


@pytest.mark.parametrize("lines", ["", "handshake_first: true", "handshake_first: auto"])
async def test_a_server_may_speak_first_or_not(by_hand: ByHand, trial: Trial, lines: str) -> None:
    """As it is configured: in the clear before it encrypts, which older ones always do, or not."""
    url = await by_hand(lines)
    async with connecting(url, trial.ca) as bus:
        await bus.serve("test", "one", [Served(ECHO, echo)], version="1.0.0")
        answer = await asyncio.to_thread(
            ask_once, url, ECHO, "one", Text("!"),
            subjects=SUBJECTS, identity=user("eve"), ca=trial.ca, within=PATIENCE_S,
        )  # fmt: skip
        assert Text("eve!") == answer


async def test_a_server_may_want_certificates_of_clients(by_hand: ByHand, trial: Trial) -> None:
    """We have none to show, and the sentence says what is missing."""
    url = await by_hand(f'ca_file: "{trial.ca}", verify: true')
    with pytest.raises(BusUnavailableError, match="wants a certificate of the client"):
        async with connecting(url, trial.ca):
            pytest.fail("connected")


async def test_an_older_version_of_tls_is_refused(trial: Trial) -> None:
    """A server that knows nothing newer than TLS 1.1 is no server for us."""
    context = showing(trial.good)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that these are old is what it is about
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with Listening(context=context) as old:
        with pytest.raises(BusUnavailableError):
            async with connecting(f"tls://{old.place}", trial.ca, patience=1.0):
                pytest.fail("connected")
    assert [] == old.understood
