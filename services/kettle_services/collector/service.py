"""
The collector's loops: follow the bucket of ads, answer queries, and have what comes and goes written down.
"""

import asyncio
import logging
import time
from typing import Final

import msgspec

from kettle.bus.ports import Bus, RefusedError
from kettle.classad import ClassAdParseError, Node, parse
from kettle.runtime.daemon_ad import daemon_facts
from kettle.runtime.duty_cycle import DutyCycle
from kettle_services.collector.domain.ads import Adverts, NotAnAdError, is_forwarded, is_picture, type_of
from kettle_services.collector.domain.machine_presence import Sighting, sighting_of
from kettle_services.collector.domain.queries import Query, page
from kettle_services.collector.domain.slot_states import SlotStates
from kettle_services.collector.forwarding import Forwarding
from kettle_services.collector.machine_recorder import Registrar
from kettle_services.collector.settings import CollectorSettings
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.collector import Ads, QueryAds
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects, ad_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_PATIENCE_S: Final = 4.0
_AT_ONCE: Final = 100
"""The number of ads that are processed before other tasks get their turn."""


class Collector:
    """
    Keeps `Adverts` equal to the bucket of ads, and answers from them; any number of collectors does.

    Until the bucket was read once, a query waits.
    """

    def __init__(self, bus: Bus, subjects: Subjects, settings: CollectorSettings) -> None:
        self._bus = bus
        self._subjects = subjects
        self._settings = settings
        self._registered_types: Final = {each.lower() for each in settings.registered_types}
        self.adverts: Final = Adverts(settings.classad_lifetime, self._registered_types)
        self.slots: Final = SlotStates()
        self._sightings: dict[str, Sighting] = {}
        self._registrar: Registrar | None = None
        self._forwarding: Forwarding | None = None
        self.complete = asyncio.Event()
        """Set when all ads that were there at the start have been read."""

    def register(self, registrar: Registrar) -> None:
        """Have machines that come and go written down from now on, those first that are there."""
        daemons = filter(self._is_registered, self.adverts.known())
        registrar.catch_up(self._sightings, daemons, complete=self.complete.is_set())
        self._registrar = registrar

    def forward(self, forwarding: Forwarding) -> None:
        """Have ads sent to other pools from now on; those that are there it finds itself."""
        self._forwarding = forwarding

    def _is_registered(self, key: str) -> bool:
        """Whether an ad is that of a daemon of which this collector is a registry."""
        return is_forwarded(key) and not is_picture(key) and type_of(key).lower() in self._registered_types

    async def watch(self) -> None:
        """Follow the bucket; never returns."""
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
            ad = self.adverts.put(key, value, time.time())
        except NotAnAdError as error:
            _log.warning("not an ad", extra={"key": key, "error": str(error)})
            return
        self.slots.heard(key, ad)
        if self._forwarding is not None:
            self._forwarding.heard(key, ad)
        if self._registrar is not None and self._is_registered(key):
            self._registrar.daemon_heard(key)
        sighting = sighting_of(key, ad)
        if sighting is None:
            self._sightings.pop(key, None)
            return
        self._sightings[key] = sighting
        if self._registrar is not None:
            self._registrar.heard(key, sighting)

    def _gone(self, key: str) -> None:
        self._sightings.pop(key, None)
        self.slots.gone(key)
        ad = self.adverts.ad(key)
        heard = self.adverts.drop(key)
        if self._forwarding is not None:
            self._forwarding.gone(key)
        if ad is None or heard is None or self._registrar is None:
            return
        if self._is_registered(key):
            self._registrar.daemon_silent(key, ad, heard)
        else:
            self._registrar.gone(key, ad, heard)

    def _listed(self, keys: set[str]) -> None:
        for key in self.adverts.known():
            if key in keys:
                continue
            if self._is_registered(key):
                self._gone(key)
                continue
            self.adverts.drop(key)
            self.slots.gone(key)
            self._sightings.pop(key, None)
            if self._forwarding is not None:
                self._forwarding.gone(key)
        if self._registrar is not None:
            self._registrar.listed(keys)

    async def expire_silent(self) -> None:
        """Notice absent ads and machines; never returns."""
        while True:
            await asyncio.sleep(self._settings.housekeeping)
            self.adverts.forget(time.time())
            for key in self.adverts.stale(time.time()):
                self._gone(key)
            if self._registrar is not None:
                self._registrar.overdue()

    async def advertise(self, registrar: Registrar, forwarding: Forwarding) -> None:
        """
        Repeat the collector's own ad, and publish it at once when another pool is reached or lost; never returns.
        """
        started, number, said, due = time.time(), 0, Ad(), 0.0
        duty = DutyCycle()
        key = ad_key("Collector", self._settings.name)
        facts = daemon_facts("collector", self._settings.name, self._settings.nats_url)
        tick = self._settings.housekeeping if forwarding.visits else self._settings.ad_interval
        while True:
            before, said = said, forwarding.ad()
            if said == before and time.monotonic() < due:
                await asyncio.sleep(tick)
                continue
            due = time.monotonic() + self._settings.ad_interval
            number += 1
            ad: Ad = {
                "MyType": "Collector",
                "Name": self._settings.name,
                "DaemonStartTime": int(started),
                "UpdateSequenceNumber": number,
                "ClassAdLifetime": int(self._settings.classad_lifetime),
                "MachinesTotal": registrar.total,
                "HostsTotal": registrar.total,
                **facts,
                **duty.facts(),
                **said,
            }
            await self._bus.put(self._subjects.ads, key, _encode(ad))
            await asyncio.sleep(tick)

    async def query_ads(self, request: QueryAds, caller: Identity) -> Ads:
        """Ads by type, constraint and projection; everybody may ask."""
        del caller
        constraint = _constraint(request.constraint)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self.complete.wait()
        except TimeoutError:
            raise RefusedError(
                RefusalCode.NOT_READY, "the collector has not read the ads yet; ask again"
            ) from None
        query = Query(
            kind=request.type, constraint=constraint, projection=request.projection, limit=request.limit,
            after=request.after, forwarded=request.forwarded,
        )  # fmt: skip
        found = page(self.adverts, query, time.time(), time.perf_counter)
        return Ads(ads=found.ads, rest=found.rest)


def _constraint(text: str) -> Node | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise RefusedError(
            RefusalCode.BAD_CONSTRAINT, f"the constraint is not an expression: {error}"
        ) from error
