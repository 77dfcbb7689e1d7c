"""
The machine's ads: at once when resources change, soon when a job begins or ends, and now and then in any case.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import BucketSpec, Bus, BusError
from kettle.execution.site_probes.declared import CHECKED
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits
from kettle_services.startd.domain.ads import slot_ads, startd_ad
from kettle_services.startd.domain.claims.preemption import capability, preemptible
from kettle_services.startd.domain.state.claim import Claim
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.state.advertised_names import AdvertisedNames, slot_of
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret
from kettle_wire.subjects import Subjects, ad_key, machine_key, slot_key

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_FLOOR_S: Final = 0.02
CLASSAD_LIFETIME_S: Final = 900.0
"""The collector's default; the bucket has the settings of the first service that makes it."""
_RETRY: Final = steady(0.5)
_LIFETIMES: Final = 3
"""How many updates may be lost before an ad expires."""
_VOLATILE: Final = frozenset({
    "MyCurrentTime", "UpdateSequenceNumber", "ClassAdLifetime", "KeyboardIdle", "ConsoleIdle", "ClockMin", "ClockDay",
    "LoadAvg", "TotalLoadAvg", "CondorLoadAvg", "TotalCondorLoadAvg", "InputCacheBytes", "InputCacheFiles",
    "TimeToLive", "InputCacheHits", "RecentDaemonCoreDutyCycle", "InputFilesFetched", "InputBytesFetched", "InputBytesFromStore",
})  # fmt: skip


class Advertiser:
    """Keeps the bucket equal to the machine.  Each ad goes out only if it changed, or its time has come."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        machine: Machine,
        *,
        advertised_names: Path,
        interval: float,
        delay: float,
        version: str,
        facts: Ad,
        counted: Callable[[], Ad] = dict,
        unconfirmed: Callable[[], int] = int,
    ) -> None:
        """
        `interval` in seconds between repeats, `delay` for what nobody waits for; `memo` is a file that we may write;
        `facts`: what every daemon says of itself; `counted`: more attributes of the startd's own ad, which go out with its next repeat;
        `unconfirmed`: final reports that nobody has confirmed.
        """
        self._bus = bus
        self._subjects = subjects
        self._machine = machine
        self._interval = interval
        self._intervals = Waits(steady(interval, spread=0.2))
        self._retries = Waits(_RETRY)
        self._delay = delay
        self._version = version
        self._facts: Final = facts
        self._counted = counted
        self._unconfirmed = unconfirmed
        self._published: dict[str, Ad] = {}
        self._claimed: set[str] = set()
        """Slots of which something was claimed since their last ads."""
        self._told_secrets: dict[str, SlotSecret] = {}
        self._advertised_names = AdvertisedNames(advertised_names)
        self._numbers: Counter[str] = Counter()
        """
        Updates of each ad so far.  That of a slot goes on when the slot is there again: who counts what was lost
        need not have seen that it was gone.
        """
        self._wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._soon: asyncio.TimerHandle | None = None
        self._repeat_at = 0.0
        self.told: Final = asyncio.Event()
        """Set when the pool has been told of the machine for the first time."""
        bus.on_return(self._repeat)

    def now(self) -> None:
        """Resources changed: the negotiator waits for it."""
        self._wake.set()

    def note_claim(self, claim: Claim) -> None:
        """
        A slot, or a part of it, was claimed: its next ad goes out even if it looks as before, because the claim is over by then.

        What the negotiator has matched it takes for used until it hears of the slot.
        """
        facts = self._machine.facts
        self._claimed.add(machine_key(facts.name, facts.slot_name(claim.parent)))

    def soon(self) -> None:
        """A change for which nobody waits."""
        if self._soon is None:
            self._soon = self._loop.call_later(self._delay, self._wake.set)

    async def run(self) -> None:
        """Publish changes, and repeat what has not changed; never returns."""
        while True:
            everything = self._loop.time() >= self._repeat_at
            self._calm()
            try:
                if everything:
                    await self._have_buckets()
                await self._publish(everything=everything)
                if everything:
                    self._repeat_at = self._loop.time() + self._intervals.delay()
                if not self.told.is_set():
                    # Its answer comes after the ads, which have none, have arrived.
                    await self._have_buckets()
                    self.told.set()
            except BusError as error:
                _log.info("ads wait", extra={"cause": str(error)})
                self._repeat_at = 0.0
                self.soon()
                await self._retries.wait()
            await asyncio.sleep(_FLOOR_S)
            try:
                async with asyncio.timeout_at(max(self._repeat_at, self._loop.time() + _FLOOR_S)):
                    await self._wake.wait()
            except TimeoutError:
                pass  # it is time to repeat

    async def withdraw(self) -> None:
        """Take all ads back."""
        try:
            for name in self._published:
                await self._bus.delete(self._subjects.ads, name)
            self._advertised_names.clear()
            for name in self._secrets():
                await self._bus.delete(self._subjects.private_ads, name)
        except BusError as error:
            _log.info("ads not withdrawn: they expire", extra={"cause": str(error)})
        self._published.clear()

    def _repeat(self) -> None:
        """The bus came back, perhaps without what it knew."""
        self._repeat_at = 0.0
        self._wake.set()

    async def _have_buckets(self) -> None:
        """
        An ad that is put into no bucket is lost until its next repeat; so the first service makes the buckets.
        """
        for bucket in (self._subjects.ads, self._subjects.private_ads):
            await self._bus.ensure_bucket(BucketSpec(name=bucket, ttl=CLASSAD_LIFETIME_S))

    def _calm(self) -> None:
        self._wake.clear()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None

    async def _publish(self, *, everything: bool) -> None:
        """The private ad first: a slot that is seen can be matched."""
        ads = self._ads()
        claimed, self._claimed = self._claimed, set()
        lifetime = _LIFETIMES * self._interval
        await self._publish_secrets(lifetime, everything=everything)
        for name in [name for name in self._advertised_names.left if name not in ads]:
            await self._bus.delete(self._subjects.private_ads, slot_of(name))
            await self._bus.delete(self._subjects.ads, name)
        self._advertised_names.left.clear()
        self._advertised_names.add(ads)
        for name in [name for name in self._published if name not in ads]:
            await self._bus.delete(self._subjects.ads, name)
            del self._published[name]
        for name, ad in ads.items():
            if everything or name in claimed or _differ(ad, self._published.get(name)):
                self._numbers[name] += 1
                ad["UpdateSequenceNumber"] = self._numbers[name]
                ad["ClassAdLifetime"] = int(lifetime)
                await self._bus.put(self._subjects.ads, name, _encode(ad), ttl=lifetime)
                self._published[name] = ad

    async def _publish_secrets(self, lifetime: float, *, everything: bool) -> None:
        """
        Publish the secrets of slots that can be matched, and of claims that can be preempted; changed ones, or all.
        """
        secrets = self._secrets()
        for name in self._told_secrets.keys() - secrets.keys():
            await self._bus.delete(self._subjects.private_ads, name)
            del self._told_secrets[name]
        for name, secret in secrets.items():
            if everything or self._told_secrets.get(name) != secret:
                await self._bus.put(self._subjects.private_ads, name, _encode(secret), ttl=lifetime)
                self._told_secrets[name] = secret

    def _secrets(self) -> dict[str, SlotSecret]:
        """By key in the bucket of private ads."""
        machine, facts = self._machine, self._machine.facts
        opened = {facts.slot_name(slot.number): machine.capability for slot in facts.slots}
        opened |= {facts.name_of(claim): capability(machine, claim) for claim in preemptible(machine)}
        return {
            slot_key(facts.name, name): SlotSecret(startd=facts.name, capability=one)
            for name, one in opened.items()
        }

    def _ads(self) -> dict[str, Ad]:
        """By key in the bucket; dynamic slots before the one that they were carved from."""
        machine, now = self._machine, time.time()
        # Of interest only to who waits for the machine to be empty; else each job would change the ad once more.
        left: Ad = {"UnconfirmedReports": self._unconfirmed()} if machine.draining else {}
        ads = {
            machine_key(machine.facts.name, str(ad["Name"])): ad | left for ad in slot_ads(machine, now=now)
        }
        own = self._facts | startd_ad(machine, now=now, version=self._version) | self._counted()
        ads[ad_key("StartDaemon", machine.facts.name)] = own
        return ads


def _differ(ad: Ad, published: Ad | None) -> bool:
    return published is None or _stable(ad) != _stable(published)


def _stable(ad: Ad) -> Ad:
    return {name: value for name, value in ad.items() if not (name in _VOLATILE or name.endswith(CHECKED))}
