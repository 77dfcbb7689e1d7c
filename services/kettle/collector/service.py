"""The collector's loops: follow the bucket of ads, notice machines, answer queries."""

import asyncio
import logging
import time
from typing import Final

import msgspec

from kettle.bus.ports import Bus, RefusedError
from kettle.classad import ClassAdParseError, Node, parse
from kettle.collector.domain.adverts import Adverts, select
from kettle.collector.domain.machines import Machines, sighting_of
from kettle.collector.record import Record
from kettle.collector.settings import CollectorSettings
from kettle.wire.ads.types import Ad
from kettle.wire.commands.collector import Ads, QueryAds
from kettle.wire.identity import Identity
from kettle.wire.subjects import Subjects, ad_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_PATIENCE_S: Final = 4.0
_AT_ONCE: Final = 100
"""Ads that are looked at before others on the loop get their turn."""


class Collector:
    """Keeps `Adverts` equal to the bucket of ads. Until the bucket was read once, a query waits."""

    def __init__(
        self, bus: Bus, subjects: Subjects, settings: CollectorSettings, record: Record, machines: Machines
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._settings = settings
        self._record = record
        self._machines = machines
        self._adverts = Adverts(settings.classad_lifetime)
        self.complete = asyncio.Event()
        """Set when all ads that were there at the start have been read."""

    async def watch(self) -> None:
        """Follow the bucket; for ever."""
        known: set[str] = set()
        async for change in self._bus.watch(self._subjects.ads):
            if (
                change is None
            ):  # everything has been listed: what was not named since the last time is not there
                self._listed(known)
                known = set()
                self.complete.set()
            elif change.value is None:
                known.discard(change.key)
                self._gone(change.key)
            else:
                known.add(change.key)
                self._heard(change.key, change.value)
                if len(known) % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _heard(self, key: str, value: bytes) -> None:
        try:
            advert = self._adverts.put(key, value, time.time())
        except msgspec.MsgspecError as error:
            _log.warning("not an ad", extra={"key": key, "error": str(error)})
            return
        sighting = sighting_of(advert)
        if sighting is not None:
            self._record.write(self._machines.seen(key, sighting))

    def _gone(self, key: str) -> None:
        advert = self._adverts.drop(key)
        if advert is not None:
            age = time.time() - advert.heard
            self._record.write(self._machines.ended(key, age=age, lifetime=advert.lifetime))

    def _listed(self, keys: set[str]) -> None:
        for key in self._adverts.known():
            if key not in keys:
                self._adverts.drop(key)
        self._machines.listed(keys, deadline=time.time() + self._settings.classad_lifetime)

    async def keep_house(self) -> None:
        """Notice ads and machines that stayed away; for ever."""
        while True:
            await asyncio.sleep(self._settings.housekeeping)
            now = time.time()
            for key in self._adverts.stale(now):
                self._gone(key)
            self._record.write(self._machines.overdue(now))

    async def advertise(self) -> None:
        """Repeat the collector's own ad; for ever."""
        started = time.time()
        key = ad_key("Collector", self._settings.name)
        while True:
            await self._bus.put(self._subjects.ads, key, _encode(self._own_ad(started)))
            await asyncio.sleep(self._settings.ad_interval)

    def _own_ad(self, started: float) -> Ad:
        return {
            "MyType": "Collector",
            "Name": self._settings.name,
            "DaemonStartTime": int(started),
            "ClassAdLifetime": int(self._settings.classad_lifetime),
            "MachinesTotal": len(self._machines.joined),
        }

    async def query_ads(self, request: QueryAds, caller: Identity) -> Ads:
        """Ads by type, constraint and projection; everybody may ask."""
        del caller
        constraint = _constraint(request.constraint)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self.complete.wait()
        except TimeoutError:
            raise RefusedError("not_ready", "the collector has not read the ads yet; ask again") from None
        now = time.time()
        adverts = self._adverts.of_type(request.type)
        found: list[Ad] = []
        for start in range(0, len(adverts), _AT_ONCE):
            found.extend(select(adverts[start : start + _AT_ONCE], constraint, request.projection, now))
            if request.limit and len(found) >= request.limit:
                del found[request.limit :]
                break
            await asyncio.sleep(0)
        return Ads(ads=found)


def _constraint(text: str) -> Node | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise RefusedError("bad_constraint", f"the constraint is not an expression: {error}") from error
