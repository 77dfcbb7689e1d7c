"""Documents come from public places over HTTPS, and are neither long nor late."""

import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kettle.auth.tokens.keys.discovery import FetchError
from kettle.auth.tokens.keys.fetching import MOST_BYTES, FetchLimits, HttpFetcher, is_public

Handler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
LOCAL: Final = FetchLimits(plain_loopback=True)


@asynccontextmanager
async def served(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    """A server on this machine, and its address."""
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    finally:
        await runner.cleanup()


async def fetched(url: str, limits: FetchLimits = LOCAL, tls: ssl.SSLContext | None = None) -> bytes:
    async with HttpFetcher.open(limits, tls=tls) as fetcher:
        return await fetcher.document(url)


async def refusal(url: str, limits: FetchLimits = LOCAL) -> str:
    with pytest.raises(FetchError) as caught:
        await fetched(url, limits)
    return str(caught.value)


async def answer(request: web.BaseRequest) -> web.StreamResponse:
    """What each path of the server does."""
    match request.path:
        case "/document":
            assert "Authorization" not in request.headers
            return web.Response(text="{}")
        case "/moved":
            raise web.HTTPFound("/document")
        case "/around":
            raise web.HTTPFound("/around")
        case "/away":
            raise web.HTTPFound("http://other.example.org/document")
        case "/port":
            raise web.HTTPFound("http://127.0.0.1:1/document")
        case "/nowhere":
            return web.Response(status=302)
        case "/large":
            return web.Response(body=b"x" * (MOST_BYTES + 1))
        case "/largest":
            return web.Response(body=b"x" * MOST_BYTES)
        case _:
            raise web.HTTPServiceUnavailable


async def test_a_document_is_fetched() -> None:
    """Also from another path of the same server, to which it was moved."""
    async with served(answer) as server:
        assert b"{}" == await fetched(f"{server}/document")
        assert b"{}" == await fetched(f"{server}/moved")
        assert MOST_BYTES == len(await fetched(f"{server}/largest"))


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/away", r"leads to another host (other.example.org)"),
        ("/port", "leads to another host"),
        ("/nowhere", "leads to another host"),
        ("/around", "more than 3 times"),
        ("/large", "more than 256 KiB"),
        ("/gone", "status 503"),
    ],
)
async def test_what_is_not_fetched(path: str, says: str) -> None:
    """No other host is asked, and neither is anything endless read."""
    async with served(answer) as server:
        assert says in await refusal(f"{server}{path}")


async def test_a_server_that_hangs_is_given_up() -> None:
    """After the time for the whole document."""
    with socket.create_server(("127.0.0.1", 0)) as listens:  # and nobody accepts
        limits = FetchLimits(plain_loopback=True, seconds=0.3)
        assert "within 0.3 s" in await refusal(f"http://127.0.0.1:{listens.getsockname()[1]}/", limits)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "http://vo.example.org/",
        "ftp://vo.example.org/",
        "file:///etc/passwd",
        "https:///jwks",
        "",
        "jwks",
        "https://127.0.0.1:9/",
        "https://localhost:9/",
        "https://[::1]:9/",
        "https://[::ffff:127.0.0.1]:9/",
        "https://[::]:9/",
        "https://0.0.0.0:9/",
        "https://2130706433:9/",
        "https://0x7f.1:9/",
        "https://①②⑦.⓪.⓪.①:9/",
        "https://169.254.169.254/latest/meta-data",
        "https://10.1.2.3/",
        "https://user:secret@127.0.0.1:9/",
    ],
)
async def test_places_that_must_not_be_asked(url: str) -> None:
    """
    Without a setting neither this machine nor one of the site is asked, no matter how its address is written.
    """
    said = await refusal(url, FetchLimits())
    assert "is not asked" in said or "cannot be fetched" in said
    assert "Connect" not in said  # nobody has tried
    assert "secret" not in said


async def test_this_machine_is_asked_without_tls_only_if_a_setting_says_so() -> None:
    """And no other machine is, with or without it."""
    async with served(answer) as server:
        assert "over https" in await refusal(f"{server}/document", FetchLimits())
        assert b"{}" == await fetched(f"{server.replace('127.0.0.1', 'localhost')}/document")
    assert "over https" in await refusal("http://10.1.2.3/")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::1", False),
    ],
)
def test_public_addresses(address: str, *, public: bool) -> None:
    """Addresses within others count as what they lead to."""
    assert public is is_public(ip_address(address))


def certificate(directory: Path, host: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server of this name shows, and what a client trusts that knows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file, secret = directory / "server.crt", directory / "server.key"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file, secret)
    return server, ssl.create_default_context(cafile=str(file))


async def test_an_issuer_within_the_site_is_named_and_must_prove_who_it_is(tmp_path: Path) -> None:
    """
    Its host may have an address of the site; its certificate is checked against the authorities that are given.
    """
    shows, trusts = certificate(tmp_path, "localhost")
    limits = FetchLimits(private_hosts=frozenset({"localhost"}))
    async with served(answer, shows) as server:
        url = f"{server.replace('127.0.0.1', 'localhost')}/document"
        assert b"{}" == await fetched(url, limits, trusts)
        with pytest.raises(FetchError, match="certificate"):
            await fetched(url, limits)
        with pytest.raises(FetchError, match="is not public"):
            await fetched(url, FetchLimits(), trusts)
