"""The negotiator's loop: wake when an ad changes, match, record, notify the schedds."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

import msgspec

from kettle.bus.ports import Bus, BusError, KeyChange
from kettle.classad import FOREIGN_STEPS, Context
from kettle.matchmaking.ad_limits import checked, checked_submitter
from kettle.matchmaking.machine_owners import MachineOwners
from kettle.runtime import Telemetry
from kettle.runtime.daemon_ad import daemon_facts
from kettle.runtime.duty_cycle import DutyCycle
from kettle_services.negotiator.accountant import Accounts
from kettle_services.negotiator.cycle_metrics import CycleMetrics
from kettle_services.negotiator.domain.concurrency_limits import SETTLES
from kettle_services.negotiator.domain.cycle import negotiate
from kettle_services.negotiator.domain.cycle_ad import last_cycle
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.rejections import Reasons
from kettle_services.negotiator.record import Record
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SlotSecret, SubmitterAd
from kettle_wire.commands.schedd import MATCHED, Matched, MatchedSlot
from kettle_wire.flocking import stranger
from kettle_wire.subjects import Subjects, ad_key, impostor, token

_log: Final = logging.getLogger(__name__)
_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_decode_submitter: Final = msgspec.msgpack.Decoder(SubmitterAd).decode
_decode_secret: Final = msgspec.msgpack.Decoder(SlotSecret).decode
_encode: Final = msgspec.msgpack.Encoder().encode
_TABLE_STEPS: Final = 2_000_000
"""
What one demand's expressions may take for all slots together; some second.

A pattern that is looked for in the names of 20,000 slots takes a quarter of it.
"""
_HEARD_S: Final = 0.2
"""
How long a cycle waits for schedds to accept their matches before the next one, so that a hanging schedd does not delay
others.
"""
_TOLD_S: Final = 60.0
"""How long a schedd is believed to remember: that a visitor from another pool was started again is not seen."""
_PAUSE_S: Final = 10.0
"""
How long a schedd that was not reached is not called for the sake of significant attributes alone: its demand stays on
the bus for a while after it is gone, and each call makes a cycle wait.
"""
_A = TypeVar("_A")


class _Told(msgspec.Struct, frozen=True):
    """What a schedd was told of significant attributes, or what was tried to tell it."""

    started: int
    """When the schedd began, seconds since the epoch."""
    names: frozenset[str]
    heard: bool
    """Whether it has answered."""
    until: float
    """When it is told again, by the monotonic clock."""


def _slot(key: str, value: bytes) -> Ad:
    ad = checked(_decode_ad(value))
    if strange := impostor(key, ad.get("Name")):
        raise ValueError(strange)
    return ad


def _secret(key: str, value: bytes) -> SlotSecret:
    secret = _decode_secret(value)
    if "." in key and token(secret.startd) != key.partition(".")[0]:
        raise ValueError(f"it came from {key} and is of {secret.startd}")
    return secret


def _submitter(key: str, value: bytes) -> SubmitterAd:
    ad = checked_submitter(_decode_submitter(value))
    if strange := stranger(key, ad.name, ad.schedd):
        raise ValueError(strange)
    return ad


class Negotiator:
    """Keeps `Pool` equal to the ads on the bus, and runs a cycle whenever they give a reason to."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        record: Record,
        settings: NegotiatorSettings,
        telemetry: Telemetry,
        *,
        pool: Pool,
        accounts: Accounts,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._record = record
        self._settings = settings
        self._pool = pool
        self._accounts = accounts
        self._groups = settings.group_policy
        self._limits = settings.limit_rules
        self._ranks = settings.ranks
        self._preemption = settings.preemption
        for cycle, matches in record.recent:
            pool.pendings.add(matches, cycle, time.monotonic() + SETTLES)
        self._awaited = {"slots", "secrets", "submitters"}
        self._owners = MachineOwners()
        self.listed: Final = asyncio.Event()
        """Set when all ads that there were at the start have come: what is in use is not known before."""
        self._owners_known: Final = asyncio.Event()
        self._reasons = Reasons()
        self._unreadable: set[str] = set()
        self._metrics = CycleMetrics(telemetry, pool)
        self._last: Ad = {}
        """The last cycle, as the negotiator's ad tells of it."""
        self._wake = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()
        """Messages with matches that are under way."""
        self._told: dict[str, _Told] = {}
        """By schedd."""
        for text in settings.rules:
            pool.asked.note_expression(text)

    async def watch_owners(self) -> None:
        """Follow whose jobs alone machines take; never returns."""
        async for change in self._bus.watch(self._subjects.machine_owners):
            if change is None:
                self._owners_known.set()
            elif self._owners.change(change.key, change.value):
                # its slots are looked at again when they are advertised the next time
                self._pool.forget_machine(change.key)

    async def watch_slots(self) -> None:
        """Follow the slots' ads; never returns."""
        await self._owners_known.wait()
        async for change in self._bus.watch(self._subjects.ads, "Machine.>"):
            if change is None:
                self._listed("slots")
            else:
                key, ad = change.key.removeprefix("Machine."), self._read(change, partial(_slot, change.key))
                self._pool.slot(key, self._owners.bound(key, ad) if ad is not None else None)
                self._stir()

    async def watch_secrets(self) -> None:
        """Follow the slots' capabilities; never returns."""
        async for change in self._bus.watch(self._subjects.private_ads):
            if change is None:
                self._listed("secrets")
            else:
                self._pool.secret(change.key, self._read(change, partial(_secret, change.key)))
                self._stir()

    async def watch_submitters(self) -> None:
        """Follow the demand; never returns."""
        async for change in self._bus.watch(self._subjects.ads, "Submitter.>"):
            if change is None:
                self._listed("submitters")
            else:
                self._pool.submitter(change.key, self._read(change, partial(_submitter, change.key)))
                self._stir()

    def _listed(self, what: str) -> None:
        self._awaited.discard(what)
        if not self._awaited:
            self.listed.set()

    def _read(self, change: KeyChange, decode: Callable[[bytes], _A]) -> _A | None:
        """
        The ad that came; None if it went, or is none, or is larger than an ad may be.

        The bucket says it again after each start, so an ad that cannot be read must not end the process.
        """
        if change.value is None:
            self._unreadable.discard(change.key)
            return None
        try:
            ad = decode(change.value)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            if change.key not in self._unreadable:
                _log.warning("ad not readable", extra={"key": change.key, "cause": str(error)})
                self._unreadable.add(change.key)
            return None
        self._unreadable.discard(change.key)
        return ad

    def _stir(self) -> None:
        if self._pool.stirred:
            self._wake.set()

    async def run(self) -> None:
        """
        Negotiate when a match has become possible, an assumption has expired, or the interval has passed; never
        returns.

        The first cycle waits for all ads; otherwise limits and quotas would seem to be unused.
        """
        await self.listed.wait()
        wait = self._settings.interval
        while True:
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                pass  # nothing came: look all the same, expressions may depend on the time
            self._wake.clear()
            began = time.monotonic()
            again = await self._cycle()
            took = time.monotonic() - began
            # A cycle that takes long leaves as much time to everything else that this process does.
            await asyncio.sleep(max(self._settings.min_interval - took, took))
            wait = self._settings.interval
            if again is not None:
                wait = max(0.0, min(wait, again - time.monotonic()))

    async def _cycle(self) -> float | None:
        """One cycle; returns when the next is due by itself, if that is known."""
        started, began = time.time(), time.monotonic()
        self._accounts.observe()
        context = Context(
            now=lambda: int(started),
            random=random.random,
            max_steps=FOREIGN_STEPS,
            max_table_steps=_TABLE_STEPS,
        )
        names = {ad.name for ad in self._pool.submitters.values()}
        recorded = self._accounts.accountant.recorded()
        if self._preemption.requirements is not None:
            names |= self._pool.used(recorded).keys()
        standings = await self._accounts.standings(started, names)
        outcome = negotiate(
            self._pool,
            self._reasons,
            now=began,
            trust=self._settings.trust,
            context=context,
            standings=standings,
            groups=self._groups,
            limits=self._limits,
            ranks=self._ranks,
            preemption=self._preemption,
            recorded=recorded,
            cycle=self._record.cycle + 1,
        )
        self._accounts.shares = outcome.groups
        await self._record.write(outcome, started=started, duration=time.monotonic() - began)
        self._metrics.add(outcome, time.monotonic() - began)
        self._last = last_cycle(outcome, started, time.monotonic() - began)
        await self._tell_all(outcome.messages)
        return outcome.again

    def _untold(self) -> dict[str, _Told]:
        """
        What is to be noted of those schedds that do not know yet what machines ask of jobs, or may have forgotten it, if they
        are told now; what machines ask by default all know.
        """
        names, now = self._pool.asked.names, time.monotonic()
        if not names:
            return {}
        started = {ad.schedd: ad.started for ad in self._pool.submitters.values()}
        self._told = {schedd: told for schedd, told in self._told.items() if schedd in started}
        # Noted before it has answered: the cycles until then do not tell it as well.
        until = now + self._settings.match_deadline + _PAUSE_S
        return {
            schedd: _Told(begun, names, heard=False, until=until)
            for schedd, begun in started.items()
            if not ((told := self._noted(schedd, begun, names, now)) and told.heard)
        }

    def _noted(self, schedd: str, started: int, names: frozenset[str], now: float) -> _Told | None:
        """What was said of these attributes to a schedd since it was started, and not too long ago."""
        told = self._told.get(schedd)
        if told is None or (told.started, told.names) != (started, names) or told.until < now:
            return None
        return told

    async def _tell_all(self, matches: Mapping[str, list[MatchedSlot]]) -> None:
        """Send each schedd its matches. A schedd that does not answer does not delay the others."""
        untold, now = self._untold(), time.monotonic()
        alone = [
            schedd
            for schedd, new in untold.items()
            if schedd not in matches and self._noted(schedd, new.started, new.names, now) is None
        ]
        messages = {**{schedd: [] for schedd in alone}, **matches}
        telling = {
            asyncio.create_task(self._tell(schedd, given, untold.get(schedd)), name=f"matches for {schedd}")
            for schedd, given in messages.items()
        }
        if not telling:
            return
        self._telling |= telling
        for task in telling:
            task.add_done_callback(self._telling.discard)
        done, _ = await asyncio.wait(telling, timeout=_HEARD_S)
        for task in done:
            task.result()

    async def _tell(self, schedd: str, matches: list[MatchedSlot], new: _Told | None) -> None:
        """`new`: what it does not know yet; without it the schedd keeps what it was told."""
        message = Matched(
            cycle=self._record.cycle, matches=matches, significant=sorted(new.names) if new else []
        )
        if new:
            self._told[schedd] = new
        try:
            await self._bus.call(MATCHED, schedd, message, deadline=self._settings.match_deadline)
        except BusError as error:  # matches are advice: what is not taken is offered again
            _log.warning("schedd not reached", extra={"schedd": schedd, "cause": str(error)})
        else:
            if new:
                until = time.monotonic() + _TOLD_S
                self._told[schedd] = msgspec.structs.replace(new, heard=True, until=until)

    async def advertise(self) -> None:
        """Publish the negotiator's own ad; never returns."""
        started, number = int(time.time()), 0
        facts = daemon_facts("negotiator", self._settings.name, self._settings.nats_url)
        duty = DutyCycle()
        while True:
            number += 1
            ad: Ad = {
                "MyType": "Negotiator",
                "Name": self._settings.name,
                "DaemonStartTime": started,
                "UpdateSequenceNumber": number,
                "LastNegotiationCycle": self._record.cycle,
                **facts,
                **self._last,
                **duty.facts(),
            }
            await self._bus.put(self._subjects.ads, ad_key("Negotiator", self._settings.name), _encode(ad))
            await asyncio.sleep(self._settings.ad_interval)
