"""A real browser, which looks at the pages of a pool."""

import os
import signal
import subprocess
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any, Final, Literal

import msgspec
from axe_playwright_python.base import AXE_SCRIPT  # type: ignore[import-untyped]
from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Page,
    Request,
    async_playwright,
)
from playwright.async_api import (
    TimeoutError as TooLateError,
)

_WITHIN_MS: Final = 60_000.0
"""After this something hangs."""
PROGRAMS: Final = ("chromium-headless-shell", "chromium")
"""What shows pages without a screen.  The first has no windows, profiles and extensions, and takes half of the other's CPU time."""
_BROKEN: Final = """() => axe.run({resultTypes: ["violations"]}).then(found => found.violations.map(
    rule => `${rule.id}: ${JSON.stringify(rule.nodes.map(node => node.target))}`))"""
NO_WIDER: Final = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
"""Whether a page is not wider than the window."""
_FITS: Final = f"width => innerWidth === width && {NO_WIDER}"
DESKTOP: Final = (1280, 860)
PHONE: Final = (390, 844)
Scheme = Literal["light", "dark"]
LOOKS: Final[tuple[tuple[Scheme, tuple[int, int]], ...]] = (("light", DESKTOP), ("dark", PHONE))


@contextmanager
def _chromium(program: str, directory: Path) -> Generator[str]:
    """Chromium, until the context ends; yields where it is driven from."""
    command = [
        program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-back-forward-cache", "--remote-debugging-port=0", f"--user-data-dir={directory}", "about:blank",
    ]  # fmt: skip
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, process_group=0
    ) as process:
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
            with suppress(ProcessLookupError):  # a browser that was told to close may be gone
                os.killpg(process.pid, signal.SIGKILL)  # Debian starts it by a script, which waits for it


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
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE_SCRIPT)
        found: list[str] = await self.page.evaluate(_BROKEN)
        return found

    async def require_readable(
        self, path: str, *, status: int = 200, until: str = "main", picture: str = ""
    ) -> None:
        """
        Somebody can read a page, which is loaded at a desk by day and carried out into the night on a phone: axe finds nothing,
        and it is not wider than the window.
        """
        await self._seen_by(*LOOKS[0])
        assert status == await self.go(path), path
        await self.page.wait_for_selector(until)
        if picture:
            await self.picture(picture)
        for scheme, size in LOOKS:
            await self._seen_by(scheme, size)
            try:
                await self.page.wait_for_function(_FITS, arg=size[0])
            except TooLateError as error:
                raise AssertionError(f"{path} is wider than a window of {size[0]} pixels") from error
            assert [] == await self.violations(), (path, scheme)

    async def _seen_by(self, scheme: Scheme, size: tuple[int, int]) -> None:
        await self.page.emulate_media(color_scheme=scheme)
        await self.page.set_viewport_size({"width": size[0], "height": size[1]})


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
        scheme: Scheme = "light",
        size: tuple[int, int] = DESKTOP,
        scripts: bool = True,
        headers: dict[str, str] | None = None,
        status: int = 200,
    ) -> AsyncGenerator[Watched]:
        """A page in a window of its own."""
        context: Any = await self.browser.new_context(
            color_scheme=scheme,
            reduced_motion="reduce",  # colours on their way from one scheme to the other are no colours of ours
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
async def browser(program: str, directory: Path) -> AsyncGenerator[Browser]:
    """A browser, until the context ends."""
    with _chromium(program, directory) as driven:
        async with async_playwright() as playwright:
            opened = await playwright.chromium.connect_over_cdp(driven, timeout=_WITHIN_MS)
            try:
                yield opened
            finally:
                await opened.close()
