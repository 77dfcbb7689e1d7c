"""Tells when sessions are to be looked at again, by whom somebody watches them."""

import asyncio
from collections.abc import Mapping
from typing import Final

LOOK_S: Final = 1.0
_LOOKS: Final = "looks"


class SessionsWatch:
    """
    Once in a second: why a session waits is said by the pool when it is asked, and recorded nowhere.  A part that says the same as
    before is not sent.
    """

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait for the next look; how many there were."""
        if looks := frames.get(_LOOKS, 0):
            await asyncio.sleep(LOOK_S)
        return {_LOOKS: looks + 1}
