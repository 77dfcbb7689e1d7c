"""What is announced to a machine outside of the pool."""

import asyncio
from pathlib import Path

from aiohttp import web

from kettle.testing.patience import PATIENCE_S
from kettle_services.worker.notices import awaited
from kettle_wire.commands.scaler import Notice
from kettle_wire.examination import Notices


class Metadata:
    """
    A server as providers of virtual machines have one: it wants a token, and says that nothing is announced until it is.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.announced = False

    async def token(self, request: web.Request) -> web.Response:
        assert request.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        return web.Response(text="let-me-in")

    async def notice(self, request: web.Request) -> web.Response:
        if request.headers.get("X-aws-ec2-metadata-token") != "let-me-in":
            return web.Response(status=401, text="terminate")
        self.asked.set()
        return web.Response(text='{"action":  "terminate"}' if self.announced else "nothing")


async def test_a_file_announces_as_soon_as_it_is_there(tmp_path: Path) -> None:
    """In its own words, with the warning that is usual there."""
    told = Notices(file=str(tmp_path / "notice"), interval=0.02, warning=90.0)
    waiting = asyncio.create_task(awaited(told))
    (tmp_path / "notice").write_text("maintenance\nat noon\n")
    async with asyncio.timeout(PATIENCE_S):
        assert Notice(kind="file", words="maintenance at noon", within=90.0) == await waiting


async def test_metadata_announce_when_they_say_so() -> None:
    """With a token, if there has to be one; an answer that says something else announces nothing."""
    metadata = Metadata()
    application = web.Application()
    application.add_routes([web.put("/token", metadata.token), web.get("/spot", metadata.notice)])
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        told = Notices(url=f"{url}/spot", token_url=f"{url}/token", says="terminate", interval=0.02)
        waiting = asyncio.create_task(awaited(told))
        async with asyncio.timeout(PATIENCE_S):
            await metadata.asked.wait()
            metadata.announced = True
            assert ("url", '{"action": "terminate"}') == ((found := await waiting).kind, found.words)
    finally:
        await runner.cleanup()
