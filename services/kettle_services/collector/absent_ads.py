"""
Machines that fell silent and are expected back: their slots stay to be seen, and nobody takes them for usable.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.bus.ports import Bus, RefusedError
from kettle.classad import FOREIGN_STEPS, ClassAd, Context, EvaluationFailed, Node, evaluate, is_true
from kettle_services.collector.domain.ads import ABSENT
from kettle_wire.ads.types import Ad
from kettle_wire.subjects import Subjects, ad_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode


class Absentees:
    """
    Keeps the ads of absent slots in the bucket of ads, for all collectors.

    `requirements`: which slots are kept, None: no slot. `expire`: seconds after its last word when a slot is forgotten.
    """

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        absent: Mapping[str, Sequence[Ad]],
        *,
        requirements: Node | None,
        expire: float,
    ) -> None:
        self._bus = bus
        self._bucket = subjects.ads
        self._requirements = requirements
        self._expire = expire
        self._absent = {machine: slots for machine, slots in absent.items() if any(map(self.expects, slots))}
        self._stirred: set[str] = set(self._absent)
        self._back: list[str] = []
        self._changed = asyncio.Event()

    def expects(self, ad: Ad) -> bool:
        """Whether a slot is to be kept when its machine falls silent."""
        if self._requirements is None:
            return False
        candidate = ClassAd.from_wire(ad)
        context = Context(now=lambda: int(time.time()), max_steps=FOREIGN_STEPS)
        try:
            return is_true(evaluate(self._requirements, candidate, candidate, context))
        except EvaluationFailed:
            return False

    def left(self, machine: str, slots: Sequence[Ad]) -> None:
        """A machine fell silent."""
        if slots:
            self._absent[machine] = slots
            self._stirred.add(machine)
            self._changed.set()

    def joined(self, machine: str) -> None:
        """A machine is there, perhaps again."""
        slots = self._absent.pop(machine, None)
        if slots is not None:
            self._back += map(_key, slots)
            self._changed.set()

    async def keep(self, *, every: float) -> None:
        """Repeat the ads before they expire, and publish changes at once; never returns."""
        while True:
            self._changed.clear()
            back, self._back = self._back, []
            for key in back:
                await self._bus.delete(self._bucket, key)
            stirred, self._stirred = self._stirred, set[str]()
            for machine in stirred:
                await self._show(self._absent.get(machine, ()))
            try:
                async with asyncio.timeout(every):
                    await self._changed.wait()
            except TimeoutError:
                self._forget(time.time())
                self._stirred = set(self._absent)

    async def _show(self, slots: Sequence[Ad]) -> None:
        for ad in slots:
            try:
                await self._bus.put(self._bucket, _key(ad), _encode({**ad, "Absent": True}))
            except RefusedError as error:
                _log.warning(
                    "an absent slot is not shown", extra={"slot": ad.get("Name"), "cause": str(error)}
                )

    def _forget(self, now: float) -> None:
        """A machine that has been absent for too long is not expected any more."""
        for machine, slots in list(self._absent.items()):
            heard = [said for ad in slots if isinstance(said := ad.get("LastHeardFrom"), int | float)]
            if now >= max(heard, default=0.0) + self._expire:
                del self._absent[machine]


def _key(ad: Ad) -> str:
    return ad_key(ABSENT, str(ad.get("Name", "")))
