"""The pages of interactive sessions, in a real browser."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kettle.client import Client
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.sessions import NewSession
from kettle_wire.sessions import SessionSize

from .browser import Looks

pytestmark = [pytest.mark.scenario, pytest.mark.embedded, pytest.mark.asyncio(loop_scope="session")]

SERVER = """\
import http.server, sys

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(b"this is the dashboard")

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


@pytest_asyncio.fixture(loop_scope="session")
async def client(pool: ThrowawayPool) -> AsyncIterator[Client]:
    """The pool's, whose sessions are over afterwards."""
    yield pool.client
    for each in await pool.client.sessions.list():
        await pool.client.sessions.stop(each.id)
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.sessions.list():
            await asyncio.sleep(0.05)


async def test_sessions_say_why_they_wait_lead_to_what_they_publish_and_are_stopped(
    look: Looks, client: Client
) -> None:
    """
    The list and the page of a session follow what happens: the reason of one that waits, the link to the page that another one publishes,
    which is that page, and the end of one that somebody stops; axe finds nothing, light or dark, wide or narrow.
    """
    size = SessionSize(cpus=900)
    await client.sessions.create(NewSession(kind="process", name="large", size=size, command=["/bin/true"]))
    async with look.at("/sessions") as seen:
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.wait_for_selector("tr:has(th a:text-is('large')) .session-queued")
        port = held_port()
        words = ["/usr/bin/python3", "-c", SERVER, str(port)]
        serving = NewSession(kind="process", name="serving", command=words, services=f"dashboard:{port}/http")
        await client.sessions.create(serving)
        await seen.page.wait_for_selector("tr:has(th a:text-is('serving')) .session-ready")
        assert [] == await seen.violations()

        await seen.page.click("th a:text-is('large')")
        await seen.page.wait_for_selector("[data-live-state=on]")
        await seen.page.wait_for_selector(".title :text('TARGET.Cpus >= RequestCpus')")
        assert [] == await seen.violations()
        await seen.page.click("text=Scale, restart or stop it")
        await seen.page.fill("[name=reason]", "too large")
        await seen.page.click("button[value=stop]")
        await seen.page.wait_for_selector("[role=status]:has-text('being stopped')")
        await seen.page.wait_for_selector(".title .session-ended")
        assert "too large" in await seen.text(".title")

        await seen.go("/sessions/serving")
        await seen.page.click(".services a:text-is('dashboard')")
        await seen.page.wait_for_selector("text=this is the dashboard")
        for path in ("/sessions", "/sessions/serving", "/sessions/large"):
            await seen.require_readable(path)
        assert 404 == await seen.go("/sessions/nobody")
