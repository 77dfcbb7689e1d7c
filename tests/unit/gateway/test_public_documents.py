"""What a gateway tells those who show nothing."""

import aiohttp
import pytest
from aiohttp import web

from kettle.runtime.http_server import serving
from kettle.runtime.measurements import Measurements
from kettle_services.gateway.public_documents import add_counts


@pytest.mark.parametrize(
    ("key", "host", "shown", "status"),
    [
        ("", "127.0.0.1", {}, 200),
        ("", "0.0.0.0", {}, 404),
        ("", "::", {}, 404),
        ("", "pool.example.org", {}, 404),
        ("of our own", "127.0.0.1", {}, 401),
        ("of our own", "0.0.0.0", {"Authorization": "Bearer another"}, 401),
        ("of our own", "0.0.0.0", {"Authorization": "Bearer of our own"}, 200),
    ],
)
async def test_counts_are_for_who_shows_the_key_and_for_this_machine(
    key: str, host: str, shown: dict[str, str], status: int
) -> None:
    """Where others reach the port, nobody has them without a key."""
    application = web.Application()
    add_counts(application, Measurements(), key, host)
    async with (
        serving(application, "127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
        client.get("/metrics", headers=shown) as answer,
    ):
        assert status == answer.status
