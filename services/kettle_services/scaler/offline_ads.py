"""
The ads of machines that sleep, in the bucket of ads, for collectors alone: there they are seen, and nobody takes them for usable.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle_services.scaler.domain.planning.offline_slots import offline_slots
from kettle_services.scaler.rooster import Rooster
from kettle_wire.ads.types import Ad
from kettle_wire.subjects import OFFLINE, Subjects, ad_key

_REPEATED_S: Final = 240.0
"""Ads live for 15 minutes, if a collector does not make that less."""
_TICK_S: Final = 1.0
_encode: Final = msgspec.msgpack.Encoder().encode
_log: Final = logging.getLogger(__name__)


class OfflineAds:
    """Keeps what is in the bucket equal to how machines are."""

    def __init__(self, bus: Bus, subjects: Subjects, rooster: Rooster) -> None:
        self._bus: Final = bus
        self._bucket: Final = subjects.ads
        self._rooster: Final = rooster
        self._said: dict[str, Ad] | None = None
        """None: what a process before this one has said is not known."""

    async def keep(self) -> None:
        """Say what has changed at once, and all of it again before it expires; never returns."""
        waited = 0.0
        while True:
            wanted = {
                ad_key(OFFLINE, str(ad["Name"])): ad
                for member in self._rooster.members()
                for ad in offline_slots(member)
            }
            try:
                if self._said is None:
                    self._said = dict.fromkeys(await self._there(), Ad())
                await self._say(wanted, again=waited >= _REPEATED_S)
            except BusError as error:
                _log.info("sleeping machines are not shown", extra={"cause": str(error)})
            waited = 0.0 if waited >= _REPEATED_S else waited + _TICK_S
            await asyncio.sleep(_TICK_S)

    async def _there(self) -> list[str]:
        keys: set[str] = set()
        async for change in self._bus.watch(self._bucket, f"{OFFLINE}.>"):
            if change is None:
                break
            if change.value is None:
                keys.discard(change.key)
            else:
                keys.add(change.key)
        return sorted(keys)

    async def _say(self, wanted: Mapping[str, Ad], *, again: bool) -> None:
        said = self._said
        assert said is not None, "what was said before is looked up first"
        for key in [key for key in said if key not in wanted]:
            await self._bus.delete(self._bucket, key)
            del said[key]
        for key, ad in wanted.items():
            if again or said.get(key) != ad:
                await self._bus.put(self._bucket, key, _encode(ad))
                said[key] = ad
