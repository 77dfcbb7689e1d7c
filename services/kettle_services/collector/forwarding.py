"""
Ads of this pool, sent to the collectors of others (CONDOR_VIEW_HOST).

Each pool has a visit of its own (`kettle.flocking`), which may fail or hang alone: nothing here waits for it.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from kettle.bus.nats import NatsBus
from kettle.bus.ports import WrongSequenceError
from kettle.flocking.passes import Passes
from kettle.flocking.pool_connections import PoolConnection
from kettle_services.collector.domain.ads import Adverts, is_forwarded, type_of
from kettle_services.collector.domain.forwarding import ForwardingQueue
from kettle_services.collector.settings import CollectorSettings
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.subjects import Subjects, forwarded_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_FLOOR_S: Final = 0.1
"""Between two looks at what is to be sent, however often ads change."""
_AT_ONCE: Final = 100
"""Ads that are sent before others on the loop get their turn."""
_NEVER: Final = 1 << 62
"""
No bucket reaches this sequence: a client that expects it writes nothing, but learns whether it may write.
"""


class Forwarding:
    """Sends what `adverts` has, of the selected types; call `heard` and `gone` for changes."""

    def __init__(self, adverts: Adverts, settings: CollectorSettings) -> None:
        self._adverts = adverts
        self._types = {each.lower() for each in settings.forward_types}
        passes = Passes(settings.home_path)
        self.visits: Final = [PoolConnection(pool, passes, self._stay) for pool in settings.view_pools]
        """`run` of each must be running."""
        self._outboxes = {
            pool: ForwardingQueue(interval=settings.forward_interval, watch=settings.forward_watch)
            for pool in settings.view_pools
        }
        self._stirred = {pool: asyncio.Event() for pool in settings.view_pools}

    def ad(self) -> Ad:
        """What the collector's ad says of the pools that it forwards to."""
        if not self.visits:
            return {}
        states = (f"{visit.name}: {visit.trouble or 'reached'}" for visit in self.visits)
        return {
            "ForwardTo": ", ".join(visit.name for visit in self.visits),
            "ForwardStates": "; ".join(states),
        }

    def heard(self, key: str, ad: Mapping[str, Scalar]) -> None:
        """An ad came, or came again; its attributes by lower-case name."""
        if self._goes(key):
            for pool, outbox in self._outboxes.items():
                outbox.changed(key, ad)
                self._stirred[pool].set()

    def gone(self, key: str) -> None:
        """An ad is not there any more."""
        for pool, outbox in self._outboxes.items():
            outbox.gone(key)
            self._stirred[pool].set()

    def _goes(self, key: str) -> bool:
        """What others forward here goes no further: two that forward to each other would never end."""
        return not is_forwarded(key) and (not self._types or type_of(key).lower() in self._types)

    async def _stay(self, visit: PoolConnection, bus: NatsBus) -> None:
        """Send to one pool until the connection is over."""
        outbox, stirred = self._outboxes[visit.name], self._stirred[visit.name]
        returned = asyncio.Event()
        returned.set()

        def again() -> None:
            returned.set()
            stirred.set()

        bus.on_return(again)
        while True:
            stirred.clear()
            if returned.is_set():
                returned.clear()
                await self._knock(visit, bus)
                outbox.again(filter(self._goes, self._adverts.known()))
            while not returned.is_set() and (some := outbox.take(time.monotonic(), _AT_ONCE)):
                for key in some:
                    await self._send(visit, bus, key)
                await asyncio.sleep(0)
            await asyncio.sleep(_FLOOR_S)
            try:
                async with asyncio.timeout(outbox.idle(time.monotonic())):
                    await stirred.wait()
            except TimeoutError:
                pass  # some are due

    async def _knock(self, visit: PoolConnection, bus: NatsBus) -> None:
        """
        Find out whether ads are accepted: puts are not answered, and a bus that restarted may have no bucket.
        """
        with suppress(WrongSequenceError):
            place = forwarded_key(visit.visitor, "Collector.x")
            await bus.update(Subjects(visit.pool).ads, place, b"", expect=_NEVER)

    async def _send(self, visit: PoolConnection, bus: NatsBus, key: str) -> None:
        outbox, bucket = self._outboxes[visit.name], Subjects(visit.pool).ads
        place = forwarded_key(visit.visitor, key)
        ad = self._adverts.ad(key)
        if ad is None:
            outbox.removed(key)
            await bus.delete(bucket, place)
            return
        outbox.sent(key, ad, time.monotonic())
        value = _encode(ad)
        if len(value) > bus.payload_limit:
            _log.warning("an ad is too large for the other pool", extra={"key": key, "pool": visit.name})
            return
        await bus.put(bucket, place, value)
