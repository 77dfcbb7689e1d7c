"""
The joining machine's side: it knows its pool by the pin of the token, and tells no other pool its secret.
"""

import asyncio
import datetime as dt
import ipaddress
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.pool.joined_files import keep
from kettle.pool.joining import JoinError, join
from kettle.testing.services import Backend

from .conftest import JOIN, Office, office_on


def certificates(directory: Path) -> dict[str, object]:
    """The settings of an iam with a certificate for the loopback interface, by an authority of its own."""
    now = dt.datetime.now(dt.UTC)

    def certificate(
        name: str,
        key: ec.EllipticCurvePrivateKey,
        issuer: str,
        signer: ec.EllipticCurvePrivateKey,
        *,
        ca: bool,
    ) -> bytes:
        made = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
                critical=False,
            )
            .sign(signer, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM)

    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    directory.mkdir()
    files = {
        "ca_certificate": certificate("authority", authority, "authority", authority, ca=True),
        "certificate": certificate("server", server, "authority", authority, ca=False),
        "certificate_key": server.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    }
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return {name: str(directory / name) for name in files}


async def test_a_machine_joins_by_one_command(office: Office, tmp_path: Path) -> None:
    """
    It has a credential that only it can read, and the settings of a startd; who asks again with a new token keeps the name.
    """
    made = await office.administrator.create_join_token()
    home = tmp_path / "machine"
    joined = await asyncio.to_thread(join, made.made.url, made.token, home=home, name="n1")
    files = keep(joined, home)
    assert {0o600} == {file.stat().st_mode & 0o777 for file in files}
    settings = tomllib.loads((home / "kettle.toml").read_text())
    assert ("n1", ["startd"]) == (settings["startd"]["name"], settings["master"]["daemon_list"])
    credential = Path(settings["kettle"]["nats_credentials"]).read_text()
    assert "-----BEGIN USER NKEY SEED-----\nSU" in credential
    assert not (home / "credentials" / "joining.nk").exists()
    assert ["n1"] == [each.worker for each in await office.administrator.workers()]


async def test_over_https_the_authority_of_the_token_is_believed(backend: Backend, tmp_path: Path) -> None:
    """And no other: a token of another pool is not even sent."""
    async with office_on(backend, tmp_path, **certificates(tmp_path / "pki")) as office:
        made = await office.administrator.create_join_token()
        assert made.made.url.startswith("https://")
        other = f"{made.token.rpartition('.')[0]}.{'0' * 64}"
        with pytest.raises(JoinError, match="its authority is another; nothing was sent"):
            await asyncio.to_thread(join, made.made.url, other, home=tmp_path / "machine", name="n1")
        joined = await asyncio.to_thread(
            join, made.made.url, made.token, home=tmp_path / "machine", name="n1"
        )
        assert joined.authority.startswith("-----BEGIN CERTIFICATE-----")
        assert [] == await office.audit("jointoken.misused")


@asynccontextmanager
async def listening(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncGenerator[str]:
    """A server of somebody else, which answers everything."""
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_another_pool_is_told_nothing(office: Office, tmp_path: Path) -> None:
    """A server that shows another key hears no secret."""
    made = await office.administrator.create_join_token()
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(f"{request.method} {request.path} {await request.text()}")
        return web.json_response({"keys": []})

    async with listening(answer) as url:
        with pytest.raises(JoinError, match="it has another key; nothing was sent"):
            await asyncio.to_thread(join, url, made.token, home=tmp_path / "machine", name="n1")
    assert ["GET /jwks.json "] == heard


async def test_who_takes_the_port_reads_no_secret(office: Office, tmp_path: Path) -> None:
    """
    It can show the pool's public keys, which everybody knows; what it is sent it cannot read, nor use for a machine of its own.
    """
    made = await office.administrator.create_join_token()
    _, keys = await office.get("/jwks.json")
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(await request.text())
        return web.json_response(keys)

    async with listening(answer) as url:
        with pytest.raises(JoinError, match="does not answer as an iam does"):
            await asyncio.to_thread(join, url, made.token, home=tmp_path / "machine", name="n1")
    sent = "&".join(heard)
    assert "sealed=" in sent
    assert not [part for part in made.token.split(".")[1:3] if part in sent]
    form = {name: values[0] for name, values in parse_qs(heard[-1]).items()}
    own = KeyPair.new(Kind.USER).public
    status, admitted = await office.post("/v1/token", form | {"name": "evil", "key": own})
    assert (200, "n1") == (status, admitted["worker"])
    assert own not in str(admitted)


@pytest.mark.parametrize("sealed", ["", "x", "a.b.c.d.e", "x" * 20_000])
async def test_what_is_not_sealed_for_the_pool_is_refused(office: Office, sealed: str) -> None:
    """With a sentence."""
    status, refusal = await office.post("/v1/token", {"grant_type": JOIN, "sealed": sealed})
    assert 400 == status
    assert refusal["detail"]


@pytest.mark.parametrize("url", ["http://pool.example", "ftp://pool.example", "https://"])
def test_no_secret_is_sent_where_others_read_it(url: str, tmp_path: Path) -> None:
    """Only HTTPS, or this machine."""
    with pytest.raises(JoinError, match="it has to begin with https://"):
        join(url, f"kettle-join-1.a.b.{'0' * 64}", home=tmp_path / "machine", name="n1")
    assert not (tmp_path / "machine").exists()


async def test_a_refusal_is_one_sentence(office: Office, tmp_path: Path) -> None:
    """The pool's own, without the token."""
    made = await office.administrator.create_join_token(owner="ada")
    with pytest.raises(JoinError, match="the join token is for machines of another owner") as caught:
        await asyncio.to_thread(
            join, made.made.url, made.token, home=tmp_path / "machine", name="n1", owner="bob"
        )
    assert made.token.split(".")[2] not in str(caught.value)
