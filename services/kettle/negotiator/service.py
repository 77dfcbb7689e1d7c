"""The negotiator's loop: wake when an ad changes, match, record, tell the schedds."""

import asyncio
import logging
import time
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError
from kettle.negotiator.domain.cycle import negotiate
from kettle.negotiator.domain.pool import Pool
from kettle.negotiator.record import Record
from kettle.negotiator.settings import NegotiatorSettings
from kettle.runtime import Telemetry
from kettle.wire.ads import Ad
from kettle.wire.ads.daemon import SlotSecret, SubmitterAd
from kettle.wire.commands.schedd import MATCHED, Matched, MatchedSlot
from kettle.wire.subjects import Subjects, ad_key

_log: Final = logging.getLogger(__name__)
_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_decode_submitter: Final = msgspec.msgpack.Decoder(SubmitterAd).decode
_decode_secret: Final = msgspec.msgpack.Decoder(SlotSecret).decode
_encode: Final = msgspec.msgpack.Encoder().encode


class Negotiator:
    """Keeps `Pool` equal to the ads on the bus, and runs a cycle whenever they give a reason to."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        record: Record,
        settings: NegotiatorSettings,
        telemetry: Telemetry,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._record = record
        self._settings = settings
        self._pool = Pool()
        self._durations = telemetry.histogram(
            "kettle.negotiator.cycle.duration", unit="s", description="Matchmaking and record of one cycle"
        )
        self._matches = telemetry.counter(
            "kettle.negotiator.matches", unit="{match}", description="Matches given"
        )
        self._wake = asyncio.Event()

    async def watch_slots(self) -> None:
        """
        Follow the slots' ads; for ever.
        """
        async for change in self._bus.watch(self._subjects.ads, "Machine.>"):
            if change is not None:
                ad = _decode_ad(change.value) if change.value is not None else None
                self._pool.slot(change.key.removeprefix("Machine."), ad)
                self._wake.set()

    async def watch_secrets(self) -> None:
        """Follow the slots' capabilities; for ever."""
        async for change in self._bus.watch(self._subjects.private_ads):
            if change is not None:
                self._pool.secret(
                    change.key, _decode_secret(change.value) if change.value is not None else None
                )
                self._wake.set()

    async def watch_submitters(self) -> None:
        """Follow the demand; for ever."""
        async for change in self._bus.watch(self._subjects.ads, "Submitter.>"):
            if change is not None:
                ad = _decode_submitter(change.value) if change.value is not None else None
                self._pool.submitter(change.key, ad)
                self._wake.set()

    async def run(self) -> None:
        """Negotiate when something has changed, or the interval has passed; for ever."""
        while True:
            try:
                async with asyncio.timeout(self._settings.interval):
                    await self._wake.wait()
            except TimeoutError:
                pass  # nothing changed: look all the same, the assumptions about matches may have run out
            self._wake.clear()
            began = time.monotonic()
            await self._cycle()
            await asyncio.sleep(max(0.0, began + self._settings.min_interval - time.monotonic()))

    async def _cycle(self) -> None:
        started, began = time.time(), time.monotonic()
        outcome = negotiate(self._pool, now=began, trust=self._settings.trust)
        await self._record.write(outcome, started=started, duration=time.monotonic() - began)
        self._durations.record(time.monotonic() - began)
        self._matches.add(len(outcome.matches))
        async with asyncio.TaskGroup() as telling:
            for schedd, matches in outcome.messages.items():
                telling.create_task(self._tell(schedd, matches))

    async def _tell(self, schedd: str, matches: list[MatchedSlot]) -> None:
        message = Matched(cycle=self._record.cycle, matches=matches)
        try:
            await self._bus.call(MATCHED, schedd, message, deadline=self._settings.match_deadline)
        except BusError as error:  # matches are advice: what is not taken is offered again
            _log.warning("schedd not reached", extra={"schedd": schedd, "cause": str(error)})

    async def advertise(self) -> None:
        """Publish the negotiator's own ad; for ever."""
        while True:
            ad: Ad = {
                "MyType": "Negotiator",
                "Name": self._settings.name,
                "LastNegotiationCycle": self._record.cycle,
            }
            await self._bus.put(self._subjects.ads, ad_key("Negotiator", self._settings.name), _encode(ad))
            await asyncio.sleep(self._settings.ad_interval)
