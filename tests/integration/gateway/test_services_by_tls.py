"""
Services of jobs by TLS and a name: who reaches what, over real connections, and what strangers try there.
"""

import asyncio
import ssl
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kettle.pki.certificates import issue, make_authority
from kettle.pki.person_authority import PersonAuthority
from kettle.published.errors import StreamCode
from kettle.published.first_words import GSS_QUESTION, TLS_QUESTION
from kettle.testing.patience import PATIENCE_S
from kettle_services.gateway.published import service_listener
from kettle_services.gateway.published.service_certificates import ServiceCertificates
from kettle_services.gateway.rest.application import RequestLimits
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId

from .published_parts import gone, job_side, raw_server, until
from .tls_programs import DOMAIN, Program, Shown, TlsGateway, kept, program, said, tls_gateway

MIB = 32
"""More than all windows and buffers on the way are together."""


async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says how much has come, when it has ended."""
    data = await reader.read()
    writer.write(b"got %d" % len(data))
    writer.write_eof()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


class Seen:
    """What has come to the job."""

    def __init__(self) -> None:
        self.data = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.data += data
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def served(
    directory: Path, serve: Any = echo, limits: RequestLimits | None = None
) -> AsyncGenerator[TlsGateway]:
    """A gateway, and a job that serves bytes."""
    async with (
        tls_gateway(directory, limits) as made,
        raw_server(serve) as port,
        job_side(made.of_http.port, f"raw:{port}/tcp, web:{port}/http"),
    ):
        made.of_http.jobs.put(described="raw:1/tcp, web:1/http")
        yield made


async def test_bytes_pass_both_ways_and_each_direction_ends_for_itself(tmp_path: Path) -> None:
    """
    The end of what a program sends reaches the job, whose answer still comes; it is counted, and for its person.
    """
    async with served(tmp_path, count) as made:
        ended: list[Any] = []
        made.of_http.uses.ended = ended.append
        async with program(made, await made.shown()) as came:
            came.send(bytes(3_000_000))
            await came.writer.drain()
            came.say_end()
            assert b"got 3000000" == await came.read()
        await until(lambda: not len(made.of_http.uses))
    [use] = ended
    assert ("alice", "raw", "tls", "owner", 1) == (
        use.person, use.service, use.via, use.because, use.attempt,
    )  # fmt: skip
    assert (3_000_000, 11) == use.bytes


async def test_a_service_that_ends_first_is_sent_the_rest(tmp_path: Path) -> None:
    """What it says first comes, then its end, and what the program says after that goes to it."""
    heard: list[bytes] = []

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"ready")
        writer.write_eof()
        heard.append(await reader.read())

    async with served(tmp_path, greet) as made:
        async with program(made, await made.shown()) as came:
            assert b"ready" == await came.read()
            assert came.ended
            came.send(b"x" * 2_000_000)
            await came.writer.drain()
            came.say_end()
            await until(lambda: bool(heard))
        assert 2_000_000 == len(heard[0])


async def test_what_is_cut_off_is_no_end(tmp_path: Path) -> None:
    """
    A program that goes without the end of TLS, as one does whose connection somebody cuts, has the job's connection broken off; the job
    may go on saying something to one that has said that it sends no more.
    """
    goes_on = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        await goes_on.wait()
        writer.write(b"later")

    async with served(tmp_path, wait) as made:
        shown = await made.shown()
        async with program(made, shown) as ends, program(made, shown) as is_cut:
            ends.say_end()
            is_cut.send(b"half of it")
            await until(lambda: 2 == len(made.of_http.uses))
            is_cut.writer.write_eof()
            await until(lambda: 1 == len(made.of_http.uses))
            goes_on.set()
            assert b"later" == await ends.read()


@pytest.mark.parametrize(
    ("person", "shared", "comes"),
    [
        ("alice", "", True),
        ("bob", "", False),
        ("bob", "bob", True),
        ("carol", "bob", False),
        ("carol", "group:atlas", True),
        ("root", "", True),
    ],
)
async def test_who_is_let_in(tmp_path: Path, person: str, shared: str, comes: bool) -> None:
    """
    The owner, those with whom it is shared, and administrators; others are told in the events of the job.
    """
    async with served(tmp_path) as made:
        made.of_http.jobs.put(shared_with=shared, described="raw:1/tcp")
        shown = await made.shown(person)
        async with program(made, shown) as came:
            came.send(b"hello")
            assert (b"hello" if comes else b"") == await came.read(5)
    assert ([] if comes else [(person, "raw", "")]) == [
        (each.person, each.service, each.because) for each in made.unserved
    ]


async def test_what_is_taken_back_ends_what_goes_on_and_lets_nothing_new_in(tmp_path: Path) -> None:
    """
    Of somebody with whom a job is not shared any more, who may only look, or whom the pool knows no more.
    """
    async with served(tmp_path) as made:
        jobs, persons = made.of_http.jobs, made.of_http.persons
        jobs.put(shared_with="bob, carol", described="raw:1/tcp")
        shown = {each: await made.shown(each) for each in ("bob", "carol", "root")}
        async with (
            program(made, shown["bob"]) as bob,
            program(made, shown["carol"]) as carol,
            program(made, shown["root"]) as root,
        ):
            for each in (bob, carol, root):
                each.send(b"x")
                assert b"x" == await each.read(1)
            jobs.put(shared_with="carol", described="raw:1/tcp")
            persons.readers.add("carol")
            del persons.known["root"]
            for each in (bob, carol, root):
                with pytest.raises(ConnectionError):
                    await each.read()
        for certificate in shown.values():
            assert "closed" == await said(made, certificate)


async def test_a_job_that_cannot_be_reached_is_told_in_its_events(tmp_path: Path) -> None:
    """TLS has no sentence for it: the connection ends, and the record of the job says why."""
    async with served(tmp_path) as made:
        shown = await made.shown()
        assert "closed" == await said(made, shown, made.name("other"))
        assert "closed" == await said(made, shown, made.name("web"))
        made.of_http.jobs.put(JobId(13, 0), status=JobStatus.HELD, hold_reason="too much memory")
        assert "closed" == await said(made, shown, made.name("web", JobId(13, 0)))
        told = [(each.job.job, each.because, each.why) for each in made.unserved]
        assert [(JobId(12, 0), "owner"), (JobId(12, 0), "owner"), (JobId(13, 0), "owner")] == [
            each[:2] for each in told
        ]
        for (_, _, why), words in zip(
            told, ("it publishes: raw", "is a server of HTTP", "too much memory"), strict=True
        ):
            assert words in why
        # Of a job that there is not there is no record.
        assert "closed" == await said(made, shown, made.name("raw", JobId(99, 0)))
        made.of_http.jobs.ended.add(JobId(14, 0))
        assert "closed" == await said(made, shown, made.name("raw", JobId(14, 0)))
        assert 3 == len(made.unserved)


async def test_a_port_on_which_nobody_listens_is_told_in_the_events_of_the_job(tmp_path: Path) -> None:
    """By the sentence of the job's side."""
    async with (
        tls_gateway(tmp_path) as made,
        job_side(made.of_http.port, "raw:1/tcp", refuses=StreamCode.NOTHING_LISTENS),
    ):
        made.of_http.jobs.put(described="raw:1/tcp")
        assert "closed" == await said(made, await made.shown())
    assert ["it is refused here"] == [each.why for each in made.unserved]
    assert not len(made.of_http.uses)


async def test_a_certificate_outlives_the_gateway_and_not_its_time(tmp_path: Path) -> None:
    """
    The keys follow from a secret that stays; a certificate that is over is refused by TLS, and by us where TLS does not look.
    """
    async with served(tmp_path) as made:
        shown = await made.shown()
    async with served(tmp_path) as again:
        async with program(again, shown) as came:
            came.send(b"still")
            assert b"still" == await came.read(5)
        over = await again.shown(seconds=-60.0)
        assert "SSLV3_ALERT_CERTIFICATE_EXPIRED" == await said(again, over)
        certificate = ssl.PEM_cert_to_DER_cert(
            Path(over.certificate).read_text().partition("-----BEGIN PR")[0]
        )
        with pytest.raises(Exception, match="has expired"):
            again.certificates.opened(certificate)


def strangers(made: TlsGateway, directory: Path) -> dict[str, tuple[str, Shown | None]]:
    """What they show, and with which alert they are refused."""
    now = datetime.now(UTC)
    another = ServiceCertificates(directory / "another", "pool", None)
    forger = make_authority("services of pool pool", now=now)
    alone = make_authority("alice", now=now)
    forged = issue(forger, ["alice"], "client", now=now)
    unsealed = made.certificates.issue("alice")
    theirs = another.issue("alice")
    return {
        "nothing": ("TLSV13_ALERT_CERTIFICATE_REQUIRED", None),
        "made by himself": ("TLSV1_ALERT_UNKNOWN_CA", kept(directory, alone.certificate, alone.key)),
        "of an authority of the same name": ("TLSV1_ALERT_UNKNOWN_CA", kept(directory, forged.certificate, forged.key)),
        "of another pool": ("TLSV1_ALERT_UNKNOWN_CA", kept(directory, theirs.certificate, theirs.key)),
        "what the gateway itself shows": ("SSLV3_ALERT_UNSUPPORTED_CERTIFICATE", kept(directory, unsealed.certificate, unsealed.key)),
    }  # fmt: skip


async def test_strangers_are_refused_by_the_alert_that_says_why(tmp_path: Path) -> None:
    """
    Nothing of them comes to the job, and they are told nothing of it: neither whether there is such a service nor whose it is.
    """
    seen = Seen()
    async with served(tmp_path, seen.serve) as made:
        for what, (alert, shown) in strangers(made, tmp_path).items():
            for name in (made.name(), made.name("nothing", JobId(99, 0))):
                assert alert == await said(made, shown, name), what
        assert not seen.data
        assert not made.unserved


def names(made: TlsGateway) -> dict[str | None, str]:
    """What programs call the service that is none here, and with which alert they are refused."""
    right = made.name()
    label = right.partition(".")[0]
    return {
        None: "TLSV13_ALERT_MISSING_EXTENSION",
        **dict.fromkeys(
            (
                DOMAIN, f"raw.12.0.{DOMAIN}", f"raw-12.{DOMAIN}", f"raw-012-0.{DOMAIN}", f"raw-12-00.{DOMAIN}", f"-12-0.{DOMAIN}",
                f"raw-12-0-.{DOMAIN}", f"raw-99999999999-0.{DOMAIN}", f"raw-4294967297-0.{DOMAIN}", f"x.{right}", f"{right}.evil.example",
                f"{label}.tcp.example.com", f"{label}.other.example.org", f"{label}-s123456.{DOMAIN}", f"{'a' * 40}-1-0.{DOMAIN}",
                "localhost", "jobs.example.org",
            ),
            "TLSV1_UNRECOGNIZED_NAME",
        ),
    }  # fmt: skip


async def test_no_name_leads_to_another_place(tmp_path: Path) -> None:
    """
    A name has one spelling, or is none; the size of its letters does not count, nor need the access point be named.
    """
    async with served(tmp_path) as made:
        shown = await made.shown()
        for name, alert in names(made).items():
            context = made.context(shown)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            assert alert == await said(made, shown, name, context), name
        for name in (made.name(), made.name().upper(), f"raw-12-0.{DOMAIN}"):
            async with program(made, shown, name) as came:
                came.send(b"x")
                assert b"x" == await came.read(1)
        assert "closed" == await said(made, shown, f"raw-12-0-s000000.{DOMAIN}")


def hello(name: bytes) -> bytes:
    """The beginning of TLS with this name in it, as no library would send it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    engine = context.wrap_bio(incoming, outgoing, server_hostname="a" * len(name))
    with suppress(ssl.SSLWantReadError):
        engine.do_handshake()
    return outgoing.read().replace(b"a" * len(name), name)


NO_TLS = {
    "HTTP": b"GET / HTTP/1.1\r\nHost: g\r\n\r\n",
    "another question of PostgreSQL": struct.pack(">II", 8, 80877102),
    "its first message": struct.pack(">II", 24, 196608) + b"user\0alice\0\0\0\0\0\0",
    "something behind the question": TLS_QUESTION + b"Q",
    "the same question twice": GSS_QUESTION,
    "nonsense": bytes(range(1, 200)),
    "a name that is no ASCII": hello("raw-12-0.tcp.example.örg".encode()),
    "a name with its end in the middle": hello(b"raw-12-0.tcp.example.org\0.evil.example"),
    "a record of the largest size that is none": b"\x16\x03\x01\xff\xff" + bytes(70_000),
}


@pytest.mark.parametrize("what", NO_TLS)
async def test_what_is_no_tls_never_reaches_the_job(
    tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is refused, and nothing of it is printed."""
    seen = Seen()
    async with served(tmp_path, seen.serve) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(NO_TLS[what])
        if NO_TLS[what] == GSS_QUESTION:
            assert b"N" == await reader.readexactly(1)
            writer.write(GSS_QUESTION)
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                await reader.read()
        await gone(writer)
        assert not seen.data
    assert "Traceback" not in capfd.readouterr().err


async def test_a_program_of_postgresql_asks_first(tmp_path: Path) -> None:
    """Whether there is GSSAPI, then whether there is TLS; and goes on then."""
    async with served(tmp_path) as made:
        shown = await made.shown()
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(GSS_QUESTION)
        assert b"N" == await reader.readexactly(1)
        writer.write(TLS_QUESTION[:3])
        await writer.drain()
        writer.write(TLS_QUESTION[3:])
        assert b"S" == await reader.readexactly(1)
        came = Program(reader, writer, made.context(shown), made.name())
        await came.shake()
        came.send(b"hello")
        assert b"hello" == await came.read(5)
        writer.transport.abort()


async def test_only_the_newest_tls_is_spoken(tmp_path: Path) -> None:
    """An older one would send the certificate, with its person's name, in the clear."""
    async with served(tmp_path) as made:
        shown = await made.shown()
        context = made.context(shown)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        assert "TLSV1_ALERT_PROTOCOL_VERSION" == await said(made, shown, context=context)


async def test_who_does_not_read_is_not_sent_more(tmp_path: Path) -> None:
    """A service that does not read stops its program, and a program that does not read stops its service."""
    written: list[int] = [0]
    reads = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reads.wait()
        data = await reader.read()
        writer.write(b"%d" % len(data))
        writer.write_eof()

    async with served(tmp_path, slow) as made, program(made, await made.shown()) as came:

        async def send() -> None:
            for _ in range(MIB):
                came.send(bytes(1 << 20))
                await came.writer.drain()
                written[0] += 1
            came.say_end()

        sending = asyncio.create_task(send())
        before = -1
        while before != written[0]:
            before = written[0]
            await asyncio.sleep(0.5)
        assert before < MIB * 3 // 4
        reads.set()
        assert str(MIB << 20).encode() == await came.read()
        await sending


async def test_a_program_that_does_not_read_stops_its_service(tmp_path: Path) -> None:
    """As far as the windows of all that is between them go."""
    written: list[int] = [0]

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(MIB):
            writer.write(bytes(1 << 20))
            await writer.drain()
            written[0] += 1
        writer.write_eof()

    async with served(tmp_path, pour) as made, program(made, await made.shown()) as came:
        before = -1
        while before != written[0]:
            before = written[0]
            await asyncio.sleep(0.5)
        assert before < MIB * 3 // 4
        assert MIB << 20 == len(await came.read())


async def test_nobody_takes_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of those who have not said who they are, of one person, and of who shows what is refused again and again.
    """
    monkeypatch.setattr(service_listener, "_MOST_UNKNOWN_OF_ONE", 3)
    limits = RequestLimits(rate=0.001, burst=3, all_rate=1e5, all_burst=1e5, proxies=frozenset())
    async with served(tmp_path, limits=limits) as made:
        shown = await made.shown()
        silent = [await asyncio.open_connection("127.0.0.1", made.port) for _ in range(3)]
        assert "broken" == await said(made, shown)
        for _, writer in silent:
            await gone(writer)

        async def comes() -> bool:
            async with program(made, shown) as came:
                came.send(b"x")
                return b"x" == await came.read(1)

        async with asyncio.timeout(PATIENCE_S):
            while True:
                with suppress(ConnectionError):
                    if await comes():
                        break
        monkeypatch.setattr(made.of_http.uses, "_most_of_one", 0)
        assert "closed" == await said(made, shown)
        assert "you have 0 connections" in made.unserved[-1].why
        monkeypatch.setattr(made.of_http.uses, "_most_of_one", 100)
        for _ in range(3):
            assert "TLSV13_ALERT_CERTIFICATE_REQUIRED" == await said(made, None)
        assert "broken" == await said(made, shown)


async def test_who_says_nothing_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, so that nobody keeps a place by silence."""
    monkeypatch.setattr(service_listener, "UNKNOWN_S", 0.2)
    async with served(tmp_path) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        with suppress(ConnectionError):
            assert not await asyncio.wait_for(reader.read(), PATIENCE_S)
        await gone(writer)


def test_what_is_sealed_is_read_by_its_authority_alone() -> None:
    """And not by one with another secret, nor in a certificate that is over."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from kettle.pki.certificates import CertificateError, make_request

    now = datetime.now(UTC)
    one, other = (PersonAuthority(each * 32, "pool", now=now) for each in (b"a", b"b"))
    _, request = make_request("client")
    for size in (64, 96, 100, 128, 5000):
        made = one.sign(request, "alice", b"x" * size, now=now, seconds=60.0)
        shown = x509.load_pem_x509_certificate(made).public_bytes(Encoding.DER)
        assert b"x" * size == one.shown(shown, now)
        assert b"x" * size not in shown
        with pytest.raises(CertificateError, match="none that was made for a person"):
            other.shown(shown, now)
        with pytest.raises(CertificateError, match="has expired"):
            one.shown(shown, now + timedelta(seconds=61))
    with pytest.raises(CertificateError, match="is no request"):
        one.sign(b"nonsense", "alice", b"", now=now, seconds=60.0)
