"""What fell silent and is expected back: its ads stay to be seen, and nobody takes them for usable."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from kettle.bus.ports import Bus, RefusedError
from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true
from kettle_services.collector.domain.ads import ABSENT
from kettle_wire.ads.types import Ad
from kettle_wire.subjects import Subjects, ad_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode

KeptAds = Mapping[str, Ad]
"""By the keys under which they stand in the bucket of ads while their machine or daemon is absent."""


class Absentees:
    """
    Keeps ads of absent machines, or daemons, in the bucket of ads, for all collectors.

    `absent`: what is kept of each, by its name. `committed` waits until all is committed that was recorded. `expire`: seconds after its
    last word when one is forgotten.
    """

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        absent: Mapping[str, KeptAds],
        committed: Callable[[], Awaitable[object]],
        *,
        expire: float,
    ) -> None:
        self._bus = bus
        self._committed = committed
        self._bucket = subjects.ads
        self._expire = expire
        self._absent = dict(absent)
        self._over: list[str] = []
        """Keys of ads that are to be shown no more."""
        self._forget(time.time())
        self._stirred: set[str] = set(self._absent)
        self._changed = asyncio.Event()

    def left(self, name: str, ads: KeptAds) -> None:
        """One fell silent."""
        if ads:
            self._absent[name] = ads
            self._stirred.add(name)
            self._changed.set()

    def joined(self, name: str) -> bool:
        """One is there, perhaps again; whether it was absent."""
        ads = self._absent.pop(name, None)
        if ads is not None:
            self._over += ads
            self._changed.set()
        return ads is not None

    async def keep(self, *, every: float) -> None:
        """Repeat the ads before they expire, and publish changes at once; never returns."""
        while True:
            self._changed.clear()
            await self._committed()
            over, self._over = self._over, []
            for key in over:
                await self._bus.delete(self._bucket, key)
            stirred, self._stirred = self._stirred, set[str]()
            for name in stirred:
                await self._show(self._absent.get(name, {}))
            try:
                async with asyncio.timeout(every):
                    await self._changed.wait()
            except TimeoutError:
                self._forget(time.time())
                self._stirred = set(self._absent)

    async def _show(self, ads: KeptAds) -> None:
        for key, ad in ads.items():
            try:
                await self._bus.put(self._bucket, key, _encode({**ad, "Absent": True}))
            except RefusedError as error:
                _log.warning("an absent ad is not shown", extra={"key": key, "cause": str(error)})

    def _forget(self, now: float) -> None:
        """One that has been absent for too long is not expected any more."""
        for name, ads in list(self._absent.items()):
            heard = [said for ad in ads.values() if isinstance(said := ad.get("LastHeardFrom"), int | float)]
            if now >= max(heard, default=0.0) + self._expire:
                del self._absent[name]
                self._over += ads


class ExpectedSlots:
    """`requirements`: which slots are kept when their machine falls silent, None: no slot."""

    def __init__(self, requirements: Node | None) -> None:
        self._requirements = requirements

    def __contains__(self, ad: Ad) -> bool:
        if self._requirements is None:
            return False
        candidate = ClassAd.from_wire(ad)
        context = Context(now=lambda: int(time.time()), max_steps=FOREIGN_STEPS)
        try:
            return is_true(evaluate(self._requirements, candidate, candidate, context))
        except EvaluationFailed:
            return False


def slot_key(ad: Ad) -> str:
    """Where an absent slot stands."""
    return ad_key(ABSENT, str(ad.get("Name", "")))
