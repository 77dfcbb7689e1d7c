"""Records which machines join and leave: of a pool's collectors, only the one that owns the shard does."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kettle_services.collector.absent_ads import Absentees
from kettle_services.collector.domain.ads import SLOT, Heard, type_of
from kettle_services.collector.domain.machine_presence import Machines, Sighting
from kettle_services.collector.record import Record
from kettle_wire.ads.types import Ad
from kettle_wire.events import MachineLeft


class Registrar:
    """
    Records what is noticed about machines.

    `lifetime`: seconds that an ad lives; a machine may be silent for that long after the bus has restarted.
    """

    def __init__(self, record: Record, machines: Machines, absentees: Absentees, *, lifetime: float) -> None:
        self._record: Final = record
        self._machines: Final = machines
        self._absentees: Final = absentees
        self._lifetime: Final = lifetime

    @property
    def total(self) -> int:
        """Machines that are there."""
        return len(self._machines.joined)

    def heard(self, key: str, sighting: Sighting) -> None:
        """An ad of a machine came, or came again."""
        self._absentees.joined(sighting.machine)
        self._record.write(self._machines.seen(key, sighting))

    def gone(self, key: str, ad: Ad, heard: Heard) -> None:
        """An ad is not there any more."""
        age = time.time() - heard.at
        expected = ad if type_of(key) == SLOT and self._absentees.expects(ad) else None
        self._write(self._machines.ended(key, age=age, lifetime=heard.lifetime, expected=expected))

    def listed(self, keys: Iterable[str]) -> None:
        """These are all ads there are."""
        self._machines.listed(keys, deadline=time.time() + self._lifetime)

    def overdue(self) -> None:
        """Some time has passed."""
        self._write(self._machines.overdue(time.time()))

    def catch_up(self, sightings: Mapping[str, Sighting], *, complete: bool) -> None:
        """What was seen before this collector came to write it down; `complete`: there are no others."""
        for key, sighting in sightings.items():
            self.heard(key, sighting)
        if complete:
            self.listed(sightings)

    def _write(self, left: Sequence[MachineLeft]) -> None:
        self._record.write(left)
        for event in left:
            self._absentees.left(event.machine, event.slots)
