"""Liveness and readiness over HTTP: `/healthz` and `/readyz`."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], bool | Awaitable[bool]]

DEADLINE_S: Final = 2.0


async def readiness(checks: Mapping[str, Check], *, deadline: float = DEADLINE_S) -> dict[str, bool]:
    """What each check says, asked side by side; one that takes longer than the deadline says no."""
    answers = await asyncio.gather(*(_ask(check, deadline) for check in checks.values()))
    return dict(zip(checks, answers, strict=True))


async def _ask(check: Check, deadline: float) -> bool:
    answer = check()
    if not inspect.isawaitable(answer):
        return answer
    try:
        async with asyncio.timeout(deadline):
            return await answer
    except (TimeoutError, OSError):
        return False


def add_health(application: "web.Application", checks: Mapping[str, Check]) -> None:
    """
    `/healthz` answers if the event loop runs; `/readyz` is 200 if every check passes, else 503, with the result of each.
    """
    from aiohttp import web  # 0.1 s to import, and most services have no port

    async def healthz(_request: web.Request) -> web.Response:
        return web.json_response({"alive": True})

    async def readyz(_request: web.Request) -> web.Response:
        answers = await readiness(checks)
        return web.json_response(answers, status=200 if all(answers.values()) else 503)

    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
