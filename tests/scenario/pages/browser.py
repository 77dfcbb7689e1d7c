"""A real browser, which looks at the pages of a pool."""

import asyncio
import os
import subprocess
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal

import msgspec
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

from kettle.testing.throwaway_pool import ThrowawayPool

_WITHIN_MS: Final = 60_000.0
"""After this something hangs."""
DESKTOP: Final = (1280, 860)
PHONE: Final = (390, 844)


@contextmanager
def chromium(program: str, directory: Path) -> Generator[str]:
    """Chromium, until the context ends; yields where it is driven from."""
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-back-forward-cache", "--remote-debugging-port=0", f"--user-data-dir={directory}", "about:blank",
    ]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        try:
            said = (line for line in process.stderr if line.startswith("DevTools listening on "))
            address = next(said, "").removeprefix("DevTools listening on ").strip()
            if not address:
                raise RuntimeError(f"{program} has ended before it could be driven")
            # It goes on to complain, and is blocked when nobody reads that.
            Thread(target=deque, args=(process.stderr, 0), name="chromium", daemon=True).start()
            yield address
        finally:
            process.kill()


class Watched:
    """A page of the pool, open in the browser, with what must not happen on it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page: Final = page
        self.address: Final = address
        self.said: list[str] = []
        """What was written to the console, and scripts that failed."""
        self.elsewhere: list[str] = []
        """Requests that left the pool."""
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        self.said.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:")):
            self.elsewhere.append(request.url)

    async def go(self, path: str) -> int:
        """Go to a page of the pool; the status of the answer."""
        response = await self.page.goto(self.address + path)
        assert response is not None
        return response.status

    async def text(self, selector: str) -> str:
        """What an element says, when it is there."""
        return " ".join((await self.page.inner_text(selector)).split())

    async def picture(self, name: str) -> None:
        """Keep what is seen, for the documentation, if KETTLE_TEST_PICTURES names a directory."""
        if directory := os.environ.get("KETTLE_TEST_PICTURES"):
            await self.page.screenshot(path=Path(directory) / name)

    async def violations(self) -> list[str]:
        """What axe finds: rules, and the elements that break them."""
        axe: Any = Axe()
        found: list[dict[str, Any]] = (await axe.run(self.page)).response["violations"]
        return [f"{each['id']}: {[node['target'] for node in each['nodes']]}" for each in found]


class Looks(msgspec.Struct, frozen=True):
    """Opens pages."""

    browser: Browser
    address: str
    headers: dict[str, str]

    @asynccontextmanager
    async def at(
        self,
        path: str,
        *,
        scheme: Literal["light", "dark"] = "light",
        size: tuple[int, int] = DESKTOP,
        scripts: bool = True,
        headers: dict[str, str] | None = None,
        status: int = 200,
    ) -> AsyncGenerator[Watched]:
        """A page in a window of its own."""
        context: Any = await self.browser.new_context(
            color_scheme=scheme,
            viewport={"width": size[0], "height": size[1]},
            java_script_enabled=scripts,
            extra_http_headers=self.headers if headers is None else headers,
        )
        context.set_default_timeout(_WITHIN_MS)
        try:
            watched = Watched(await context.new_page(), self.address)
            assert status == await watched.go(path)
            yield watched
        finally:
            await context.close()


@asynccontextmanager
async def looks(driven: str, pool: ThrowawayPool) -> AsyncGenerator[Looks]:
    """The browser, as the account that the pool runs as sees its pages."""
    gateway = pool.home / "gateway"
    token, port = await asyncio.gather(
        *(asyncio.to_thread((gateway / name).read_text) for name in ("token", "port"))
    )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(driven, timeout=_WITHIN_MS)
        try:
            yield Looks(
                browser, f"http://127.0.0.1:{port.strip()}", {"Authorization": f"Bearer {token.strip()}"}
            )
        finally:
            await browser.close()
