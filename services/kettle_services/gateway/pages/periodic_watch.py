"""
Parts of pages about what no event of a queue tells: they are looked at each second, and sent if they say something else.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from aiohttp import web

from kettle_services.gateway.pages.page import Shown
from kettle_services.gateway.rest.application import Asked

LOOK_S: Final = 1.0
_LOOKS: Final = "looks"


class PeriodicWatch:
    """
    Once in a second: how a session or a task queue is, and why it waits, is said by their service when it is asked.  A part that says
    the same as before is not sent.
    """

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait for the next look; how many there were."""
        if looks := frames.get(_LOOKS, 0):
            await asyncio.sleep(LOOK_S)
        return {_LOOKS: looks + 1}


def same_or_new(asked: Asked, shown: Shown, key: web.RequestKey[Shown]) -> Shown:
    """What this reader was shown before, if it says the same; it is remembered under `key`."""
    before: Shown | None = asked.request.get(key)
    if before is not None and before == shown:
        return before
    asked.request[key] = shown
    return shown
