"""
Records which machines join and leave, and which registered daemons fall silent: of a pool's collectors, only the one that owns the shard
does.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kettle_services.collector.absent_ads import Absentees, ExpectedSlots, slot_key
from kettle_services.collector.domain.ads import SLOT, Heard, silent_key, type_of
from kettle_services.collector.domain.machine_presence import Machines, Sighting
from kettle_services.collector.record import Record
from kettle_wire.ads.types import Ad
from kettle_wire.events import MachineLeft
from kettle_wire.events.machine import AdHeard, AdKept


class Registrar:
    """
    Records what is noticed about machines and registered daemons, and has their ads kept in `absent` and `registered`.

    `lifetime`: seconds that an ad lives; a machine may be silent for that long after the bus has restarted.
    """

    def __init__(
        self,
        record: Record,
        machines: Machines,
        absent: Absentees,
        registered: Absentees,
        expected: ExpectedSlots,
        *,
        lifetime: float,
    ) -> None:
        self._record: Final = record
        self._machines: Final = machines
        self._absent: Final = absent
        self._registered: Final = registered
        self._expected: Final = expected
        self._lifetime: Final = lifetime

    @property
    def total(self) -> int:
        """Machines that are there."""
        return len(self._machines.joined)

    def heard(self, key: str, sighting: Sighting) -> None:
        """An ad of a machine came, or came again."""
        self._absent.joined(sighting.machine)
        self._record.write(self._machines.seen(key, sighting))

    def gone(self, key: str, ad: Ad, heard: Heard) -> None:
        """An ad is not there any more."""
        age = time.time() - heard.at
        expected = ad if type_of(key) == SLOT and ad in self._expected else None
        self._write(self._machines.ended(key, age=age, lifetime=heard.lifetime, expected=expected))

    def daemon_heard(self, key: str) -> None:
        """An ad of a registered daemon came, or came again."""
        if self._registered.joined(key):
            self._record.write([AdHeard(key=key)])

    def daemon_silent(self, key: str, ad: Ad, heard: Heard) -> None:
        """
        It is not there any more. Whether it has ended or cannot be heard is not known here: its pool withdraws the ad in both cases.
        """
        kept: Ad = {**ad, "LastHeardFrom": int(heard.at)}
        self._record.write([AdKept(key=key, ad=kept)])
        self._registered.left(key, {silent_key(key): kept})

    def listed(self, keys: Iterable[str]) -> None:
        """These are all ads there are."""
        self._machines.listed(keys, deadline=time.time() + self._lifetime)

    def overdue(self) -> None:
        """Some time has passed."""
        self._write(self._machines.overdue(time.time()))

    def catch_up(self, sightings: Mapping[str, Sighting], daemons: Iterable[str], *, complete: bool) -> None:
        """
        What was seen before this collector came to write it down, `daemons` the keys of registered ones; `complete`: there are no others.
        """
        for key, sighting in sightings.items():
            self.heard(key, sighting)
        for key in daemons:
            self.daemon_heard(key)
        if complete:
            self.listed(sightings)

    def _write(self, left: Sequence[MachineLeft]) -> None:
        self._record.write(left)
        for event in left:
            self._absent.left(event.machine, {slot_key(ad): ad for ad in event.slots})
