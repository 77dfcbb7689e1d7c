"""Follows the ads of slots and submitters, as a negotiator does."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import numpy as np

from kettle.bus.ports import Bus, KeyChange
from kettle.classad.columnar import Table
from kettle.matchmaking.ad_limits import checked, checked_submitter
from kettle.matchmaking.machine_owners import MachineOwners
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import SubmitterAd
from kettle_wire.flocking import stranger
from kettle_wire.subjects import Subjects, impostor, untoken

_MACHINE: Final = "Machine."
_SUBMITTER: Final = "Submitter."
_PULSE: Final = frozenset({"MyCurrentTime", "LastHeardFrom", "UpdateSequenceNumber", "TimeToLive"})
"""What differs in every ad of a slot in which nothing has changed."""
_decode_ad: Final = msgspec.msgpack.Decoder(Ad).decode
_decode_submitter: Final = msgspec.msgpack.Decoder(SubmitterAd).decode
_log: Final = logging.getLogger(__name__)
_A = TypeVar("_A")


class Watching:
    """
    What there is on the bus. The keys of slots are their machines and names, both as tokens with a dot between them.
    """

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self._listeners: list[Callable[[], None]] = []
        self.slots: Final = Table(quiet=_PULSE)
        self.submitters: Final[dict[str, SubmitterAd]] = {}
        self.listed: Final = asyncio.Event()
        """Set when everything has come that there was at the start."""
        self._awaited = {_MACHINE, _SUBMITTER}
        self.heard: Final[dict[str, float]] = {}
        """When the last ad of a machine came, by the token of its name; of those that were there at the start none did."""
        self._owners = MachineOwners()
        self._owners_known = asyncio.Event()
        self._unreadable: set[str] = set()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have somebody told that something is there that was not, or has gone."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()

    async def watch_owners(self) -> None:
        """Follow whose jobs alone machines take; never returns."""
        async for change in self._bus.watch(self._subjects.machine_owners):
            if change is None:
                self._owners_known.set()
            elif self._owners.change(change.key, change.value):
                for key in [each for each in self.slots.keys if each.partition(".")[0] == change.key]:
                    self.slots.remove(key)

    async def watch_slots(self) -> None:
        """Follow the slots' ads; never returns."""
        await self._owners_known.wait()
        async for change in self._bus.watch(self._subjects.ads, f"{_MACHINE}>"):
            if change is None:
                self._listed(_MACHINE)
                continue
            key, before = change.key.removeprefix(_MACHINE), self.slots.news
            ad = self._read(change, _slot)
            if ad is not None and self.listed.is_set():
                self.heard[key.partition(".")[0]] = time.time()
            if ad is not None:
                self.slots.put(key, self._owners.bound(key, ad))
            elif key in self.slots:
                self.slots.remove(key)
            if self.slots.news != before:
                self._changed()

    def drained_by(self, request: str) -> set[str]:
        """The machines that say that they are drained by a request, by the tokens of their names."""
        drained = self.slots.says("DrainingRequestId", request)
        return {self.slots.keys[row].partition(".")[0] for row in np.flatnonzero(drained).tolist()}

    async def watch_submitters(self) -> None:
        """Follow the demand; never returns."""
        async for change in self._bus.watch(self._subjects.ads, f"{_SUBMITTER}>"):
            if change is None:
                self._listed(_SUBMITTER)
                continue
            before = self.submitters.pop(change.key, None)
            ad = self._read(change, _submitter)
            if ad is not None:
                self.submitters[change.key] = ad
            if _wanted(before) != _wanted(ad):
                self._changed()

    def _listed(self, what: str) -> None:
        self._awaited.discard(what)
        if not self._awaited:
            self.listed.set()

    def _read(self, change: KeyChange, decode: Callable[[str, bytes], _A]) -> _A | None:
        """The ad that came; None if it went, or cannot be read."""
        if change.value is None:
            self._unreadable.discard(change.key)
            return None
        try:
            ad = decode(change.key, change.value)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            if change.key not in self._unreadable:
                _log.warning("ad not readable", extra={"key": change.key, "cause": str(error)})
                self._unreadable.add(change.key)
            return None
        self._unreadable.discard(change.key)
        return ad


def machine_of(key: str) -> str:
    """The machine whose startd wrote the ad of a slot, by its key: the bus lets nobody else write it."""
    return untoken(key.partition(".")[0])


def _wanted(ad: SubmitterAd | None) -> object:
    return ad and (ad.requests, ad.limits)


def _slot(key: str, value: bytes) -> Ad:
    ad = checked(_decode_ad(value))
    if strange := impostor(key, ad.get("Name")):
        raise ValueError(strange)
    return ad


def _submitter(key: str, value: bytes) -> SubmitterAd:
    ad = checked_submitter(_decode_submitter(value))
    if strange := stranger(key, ad.name, ad.schedd):
        raise ValueError(strange)
    return ad
