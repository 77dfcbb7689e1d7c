"""Saying something until it is heard: every message of a shadow is harmless to repeat."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kettle.bus.ports import BusError, RefusedError
from kettle.shadow.settings import ShadowSettings

_log: Final = logging.getLogger(__name__)

T = TypeVar("T")


async def until_heard(what: str, ask: Callable[[], Awaitable[T]], settings: ShadowSettings) -> T:
    """Call `ask` until it is answered, with jittered back-off; raises RefusedError, which no repeat would change."""
    wait = settings.retry
    while True:
        try:
            return await ask()
        except RefusedError:
            raise
        except BusError as error:
            _log.info("not heard yet: %s", what, extra={"cause": str(error)})
        await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads repeats, guards nothing
        wait = min(wait * 2, settings.retry_ceiling)
