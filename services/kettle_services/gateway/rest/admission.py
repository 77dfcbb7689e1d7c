"""Whether somebody to whom an answer goes on for long may still have it."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from kettle_services.gateway.rest.refusals import RequestRefused

LOOK_AGAIN_S: Final = 3.0
"""How soon it is noticed that somebody may have an answer no more that goes on, or has left, whose place another one may want."""
GOOD_NO_MORE: Final = frozenset({401, 403})
"""With these a credential is refused that will not be taken later either."""


class Admission:
    """Looks again, every few seconds, whether a request would be admitted that was."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        """`look` raises RequestRefused: it would not."""
        self._look = look
        self._due = time.monotonic() + LOOK_AGAIN_S

    async def require_still(self) -> None:
        """
        Raises RequestRefused: the session has ended, the token was withdrawn, or its holder may come no more.

        Where nobody can tell at the moment, what was told last counts.
        """
        if time.monotonic() < self._due:
            return
        try:
            await self._look()
        except RequestRefused as refusal:
            if refusal.status in GOOD_NO_MORE:
                raise
        finally:
            self._due = time.monotonic() + LOOK_AGAIN_S
