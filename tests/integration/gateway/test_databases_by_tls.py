"""A real client of a real database, which a job publishes, by TLS and the name."""

# asyncpg's types are partial:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
import socket
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from kettle.testing.services import Backend

from .published_parts import job_side, raw_server
from .tls_programs import DOMAIN, tls_gateway


async def test_a_client_of_postgresql_computes(
    tmp_path: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    It asks whether there is TLS, checks the name, shows its certificate, and asks the database for many rows.
    """
    place = urlsplit(backend.place.addresses.database_url)
    words = {name: values[0] for name, values in parse_qs(place.query).items()}
    directory = words["host"]
    (plug,) = Path(directory).glob(".s.PGSQL.*[0-9]")

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As the job's database would listen on a port."""
        from_database, to_database = await asyncio.open_unix_connection(str(plug))

        async def there() -> None:
            while data := await reader.read(65536):
                to_database.write(data)

        sending = asyncio.create_task(there())
        while data := await from_database.read(65536):
            writer.write(data)
            await writer.drain()
        sending.cancel()  # the database ends a connection as a whole
        to_database.close()

    look_up = socket.getaddrinfo

    def here(host: Any, *rest: Any, **more: Any) -> Any:
        return look_up("127.0.0.1" if str(host).endswith(DOMAIN) else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    async with (
        tls_gateway(tmp_path) as made,
        raw_server(passed_on) as port,
        job_side(made.of_http.port, f"db:{port}/tcp"),
    ):
        made.of_http.jobs.put(described="db:1/tcp")
        connection = await asyncpg.connect(
            host=made.name("db"),
            port=made.port,
            user=place.username,
            database=place.path.lstrip("/"),
            passfile=words.get("passfile"),
            ssl=made.context(await made.shown()),
        )
        rows = await connection.fetch(
            "SELECT n, repeat('x', 1000) AS text FROM generate_series(1, 5000) AS n"
        )
        assert (5000, 1000) == (len(rows), len(rows[-1]["text"]))
        await connection.close()
        with pytest.raises((OSError, asyncpg.PostgresConnectionError)):
            await asyncpg.connect(
                host=made.name("db"),
                port=made.port,
                user=place.username,
                ssl=made.context(await made.shown("bob")),
            )
    assert ["bob"] == [each.person for each in made.unserved]
