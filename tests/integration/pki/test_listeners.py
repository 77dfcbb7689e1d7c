"""Pages over HTTPS: new certificates without loss, certificates of clients, and the one of the authority."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.contexts import Listener, client_context
from kettle.pki.explanations import UntrustedError
from kettle.pki.rehearsal import rehearse
from kettle.runtime import Runtime, Settings, SettingsError
from kettle.runtime.http_server import serving
from kettle.runtime.tls_listener import tls_context
from kettle_services.gateway.public_documents import add_documents

SETTINGS = Settings()


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def files(tmp_path: Path) -> AuthorityFiles:
    """An authority with a certificate for the loopback interface, and one for a client."""
    files = AuthorityFiles(tmp_path / "pki")
    files.make("Trial", now=now())
    files.issue(["127.0.0.1"], "server", now=now())
    files.issue(["monitoring"], "client", now=now())
    return files


@asynccontextmanager
async def served(files: AuthorityFiles, rt: Runtime, *, client_ca: str = "") -> AsyncGenerator[int]:
    """The pages of a gateway, encrypted; yields the port."""
    shown = files.kept("127.0.0.1")
    context = tls_context(rt, certificate=str(shown.certificate), key=str(shown.key), client_ca=client_ca)
    application = web.Application()
    add_documents(application, str(files.kept("ca").certificate))
    async with serving(application, "127.0.0.1", 0, context) as port:
        yield port


def authority(files: AuthorityFiles) -> str:
    return str(files.kept("ca").certificate)


async def serial(port: int, ca: str) -> str:
    """Of the certificate that a new connection sees."""
    _, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(ca), server_hostname="127.0.0.1"
    )
    seen = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    await writer.wait_closed()
    return str(seen).lower().lstrip("0")


async def test_a_new_certificate_is_shown_without_loss_of_a_connection(files: AuthorityFiles) -> None:
    """
    SIGHUP: connections that there are go on, new ones see the new one; what cannot be used changes nothing.
    """
    rt, ca = Runtime("gateway"), authority(files)
    async with (
        served(files, rt) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_context(ca))) as session,
    ):
        url = f"https://127.0.0.1:{port}/schemas"
        async with session.get(url) as answer:
            assert 200 == answer.status
        old = files.kept("127.0.0.1").facts.serial
        assert old == await serial(port, ca)

        files.renew("127.0.0.1", now=now())
        rt.reconfigure(Settings, SETTINGS)
        new = files.kept("127.0.0.1").facts.serial
        assert old != new == await serial(port, ca)
        async with session.get(url) as answer:  # over the connection that there was
            assert 200 == answer.status

        files.kept("127.0.0.1").certificate.write_text("damaged")
        rt.reconfigure(Settings, SETTINGS)
        assert new == await serial(port, ca)


async def test_a_key_of_another_certificate_is_refused(files: AuthorityFiles) -> None:
    one, other = files.kept("127.0.0.1"), files.kept("monitoring")
    with pytest.raises(SettingsError, match="do not belong together"):
        tls_context(Runtime("gateway"), certificate=str(one.certificate), key=str(other.key))
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        tls_context(Runtime("gateway"), certificate=str(one.certificate), key="/nowhere")


async def test_only_clients_with_a_certificate_get_in(files: AuthorityFiles) -> None:
    """Where their authority is given; a certificate of a server is none of a client."""
    ca = authority(files)
    async with served(files, Runtime("gateway"), client_ca=ca) as port:
        url = f"https://127.0.0.1:{port}/schemas"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_context(ca))) as session:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await session.get(url)
        for name, admitted in (("monitoring", True), ("127.0.0.1", False)):
            context = client_context(ca)
            context.load_cert_chain(files.kept(name).certificate, files.kept(name).key)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
                if admitted:
                    async with session.get(url) as answer:
                        assert 200 == answer.status
                else:
                    with pytest.raises((aiohttp.ClientError, OSError)):
                        await session.get(url)


async def test_the_certificate_of_the_authority_is_shown(files: AuthorityFiles) -> None:
    """Who has only its pin can fetch it, and compare."""
    ca = authority(files)
    async with (
        served(files, Runtime("gateway")) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_context(ca))) as session,
        session.get(f"https://127.0.0.1:{port}/ca.pem") as answer,
    ):
        assert files.kept("ca").certificate.read_bytes() == await answer.read()


def test_what_no_client_would_accept_is_found_before_it_is_shown(
    files: AuthorityFiles, tmp_path: Path
) -> None:
    """Another name, another authority, expired: as a client says it; and a good one passes."""
    other = AuthorityFiles(tmp_path / "other")
    other.make("Trial", now=now())
    files.issue(["old", "127.0.0.1"], "server", now=now() - timedelta(days=3), days=1)
    good = files.kept("127.0.0.1")
    listener = Listener(certificate=str(good.certificate), key=str(good.key))
    rehearse(listener, name="127.0.0.1", ca=authority(files))
    with pytest.raises(UntrustedError, match="is for other names"):
        rehearse(listener, name="bus.example.org", ca=authority(files))
    with pytest.raises(UntrustedError, match="is not signed by the authority in"):
        rehearse(listener, name="127.0.0.1", ca=authority(other))
    old = files.kept("old")
    with pytest.raises(UntrustedError, match="has expired"):
        rehearse(
            Listener(certificate=str(old.certificate), key=str(old.key)),
            name="127.0.0.1",
            ca=authority(files),
        )


def test_no_client_speaks_an_old_version() -> None:
    assert ssl.TLSVersion.TLSv1_2 == client_context().minimum_version
