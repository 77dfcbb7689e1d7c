"""
A database that is reached over TLS: `sslmode=verify-full` and `sslrootcert` in its URL are all that it takes.
"""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import pytest_asyncio

from kettle.embedded import EmbeddedPostgres
from kettle.embedded.postgres_cluster import SUPERUSER
from kettle.eventsourcing.log import LogUnavailableError
from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.contexts import Listener
from kettle.storage.database import Database
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)


class Encrypting:
    """
    What stands before a database that cannot encrypt by itself, as the embedded one: it speaks PostgreSQL's TLS with clients,
    and hands on what they say.
    """

    def __init__(self, server: EmbeddedPostgres, context: ssl.SSLContext | None) -> None:
        """Without a `context` it says that it has no encryption."""
        query = parse_qs(urlsplit(server.dsn).query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.5432"
        self._password = Path(query["passfile"][0]).read_text().strip().rpartition(":")[2]
        self._context = context
        self.versions: list[str] = []
        """Of TLS, of each client that came in."""
        self.said: list[bytes] = []
        """What clients sent in the clear after they were refused."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._meet, "127.0.0.1")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def url(self, ca: str, *, host: str = "127.0.0.1") -> str:
        port = self._server.sockets[0].getsockname()[1]
        name = f"{SUPERUSER}:{quote(self._password, safe='')}"
        return f"postgresql://{name}@{host}:{port}/kettle?sslmode=verify-full&sslrootcert={quote(ca)}"

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert _SSL_REQUEST == await reader.readexactly(8)
            if self._context is None:
                writer.write(b"N")
                self.said.append(await reader.read())
                return
            writer.write(b"S")
            await writer.start_tls(self._context)
            self.versions.append(writer.get_extra_info("ssl_object").version())
            inner = await asyncio.open_unix_connection(self._socket)
            await asyncio.gather(_hand_on(reader, inner[1]), _hand_on(inner[0], writer))
        except OSError:
            pass  # a client that does not trust us breaks off
        finally:
            writer.close()


async def _hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> AuthorityFiles:
    """An authority with a certificate for the loopback interface."""
    files = AuthorityFiles(tmp_path_factory.mktemp("pki"))
    files.make("Trial", now=datetime.now(UTC))
    files.issue(["127.0.0.1"], "server", now=datetime.now(UTC))
    return files


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(template: Path) -> AsyncIterator[EmbeddedPostgres]:
    with server_directory() as directory:
        async with EmbeddedPostgres(directory / "postgres", throwaway=True, template=template) as server:
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def encrypted(database: EmbeddedPostgres, files: AuthorityFiles) -> AsyncIterator[Encrypting]:
    shown = files.kept("127.0.0.1")
    context = Listener(certificate=str(shown.certificate), key=str(shown.key)).context()
    async with Encrypting(database, context) as running:
        yield running


def authority(files: AuthorityFiles) -> str:
    return str(files.kept("ca").certificate)


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_log_is_reached_encrypted(encrypted: Encrypting, files: AuthorityFiles) -> None:
    """Nothing but the URL says so."""
    async with (
        Database.connect(encrypted.url(authority(files)), patience=PATIENCE_S) as connected,
        connected.connection() as connection,
    ):
        assert 2 == await connection.fetchval("SELECT 1 + 1")
    assert set(encrypted.versions) <= {"TLSv1.2", "TLSv1.3"}
    assert encrypted.versions


async def test_another_server_is_refused_at_once(
    encrypted: Encrypting, files: AuthorityFiles, tmp_path: Path
) -> None:
    """
    Of another authority, or under a name that is not in its certificate: with a sentence, and without waiting.
    """
    other = AuthorityFiles(tmp_path / "other")
    other.make("Trial", now=datetime.now(UTC))
    with pytest.raises(
        LogUnavailableError, match=r"PostgreSQL is not signed by the authority in .*/other/ca"
    ):
        async with Database.connect(encrypted.url(authority(other))):
            pytest.fail("connected")
    with pytest.raises(LogUnavailableError, match="PostgreSQL is for other names"):
        async with Database.connect(encrypted.url(authority(files), host="localhost")):
            pytest.fail("connected")
    assert [] == encrypted.versions


async def test_a_server_in_the_clear_hears_nothing(database: EmbeddedPostgres, files: AuthorityFiles) -> None:
    """It is asked for TLS, says that it has none, and is sent neither a name nor a password."""
    async with Encrypting(database, None) as plain:
        with pytest.raises(LogUnavailableError, match="rejected SSL upgrade"):
            async with Database.connect(plain.url(authority(files)), patience=3.0):
                pytest.fail("connected")
    assert plain.said
    assert {b""} == set(plain.said)
