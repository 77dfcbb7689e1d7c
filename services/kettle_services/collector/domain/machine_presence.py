"""
Which machines are in the pool, and when one has joined or left.

A machine is present while one of its ads exists: that of its startd, or of one of its slots.  A silent machine has left
after an ad's lifetime; so a collector or a bus that was down for a moment makes no machine leave.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from kettle_services.collector.domain.ads import SLOT, is_forwarded, is_picture, type_of
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.events import MachineJoined, MachineLeft
from kettle_wire.events.machine import AdHeard, AdKept

STARTD: Final = "StartDaemon"

_PUNCTUAL: Final = 0.9
"""An ad that ends at this part of its lifetime or later has run out; before, somebody withdrew it."""


class Sighting(msgspec.Struct, frozen=True):
    """What one ad says about the machine that it is of."""

    machine: str
    cpus: int
    memory: int
    """MiB."""


def sighting_of(key: str, ad: Mapping[str, Scalar]) -> Sighting | None:
    """
    The machine that an ad is of, whose attributes have lower-case names; None for ads that are of no machine.
    """
    kind = type_of(key)
    if kind not in {STARTD, SLOT} or is_picture(key) or is_forwarded(key):
        return None
    machine = ad.get("machine") or (ad.get("name") if kind == STARTD else None)
    if not isinstance(machine, str):
        return None
    cpus = _whole(ad, "totalcpus", "detectedcpus", "cpus")
    return Sighting(machine, cpus, _whole(ad, "totalmemory", "detectedmemory", "memory"))


class Machines:
    """
    What is recorded of machines, and what is seen of them.

    `joined`: the machines that the record says are there. None of them has been seen yet; they have until `deadline`.
    """

    def __init__(self, joined: Iterable[str], *, deadline: float) -> None:
        self._silent: dict[str, float] = dict.fromkeys(joined, deadline)
        self._joined = set(self._silent)
        self._of: dict[str, str] = {}
        self._keys: dict[str, set[str]] = {}
        self._expected: dict[str, list[Ad]] = {}

    @property
    def joined(self) -> frozenset[str]:
        """The machines that are there."""
        return frozenset(self._joined)

    def seen(self, key: str, sighting: Sighting) -> list[MachineJoined]:
        """An ad came, or came again."""
        machine = sighting.machine
        before = self._of.get(key)
        if before is not None and before != machine:
            self._forget(key)
        self._of[key] = machine
        self._keys.setdefault(machine, set()).add(key)
        self._silent.pop(machine, None)
        self._expected.pop(machine, None)
        if machine in self._joined:
            return []
        self._joined.add(machine)
        return [MachineJoined(machine=machine, cpus=sighting.cpus, memory=sighting.memory)]

    def ended(
        self, key: str, *, age: float, lifetime: float, expected: Ad | None = None
    ) -> list[MachineLeft]:
        """
        The entry of an ad was removed, `age` seconds after its last update.

        `expected`: it belongs to a slot that is expected to come back, if it has expired.
        """
        machine = self._forget(key)
        if machine is None or machine not in self._joined:
            return []
        ran_out = age >= lifetime * _PUNCTUAL
        if ran_out and expected is not None:
            self._expected.setdefault(machine, []).append(expected)
        return [] if machine in self._keys else [self._leave(machine, "expired" if ran_out else "drained")]

    def listed(self, keys: Iterable[str], *, deadline: float) -> None:
        """
        The bus has restarted, and these are all existing ads: a machine without any has until `deadline` to come back.
        """
        for key in self._of.keys() - set(keys):
            self._forget(key)
        for machine in self._joined - self._keys.keys():
            self._silent.setdefault(machine, deadline)

    def overdue(self, now: float) -> list[MachineLeft]:
        """Machines that were to come back and did not."""
        late = [machine for machine, deadline in self._silent.items() if deadline <= now]
        return [self._leave(machine, "expired") for machine in late]

    def _leave(self, machine: str, reason: Literal["drained", "expired"]) -> MachineLeft:
        self._joined.discard(machine)
        self._silent.pop(machine, None)
        slots = self._expected.pop(machine, [])
        return MachineLeft(machine=machine, reason=reason, slots=slots if reason == "expired" else [])

    def _forget(self, key: str) -> str | None:
        machine = self._of.pop(key, None)
        if machine is not None:
            keys = self._keys[machine]
            keys.discard(key)
            if not keys:
                del self._keys[machine]
        return machine


def fold(joined: set[str], event: object) -> None:
    """Change the set of machines that are there as a recorded event does."""
    match event:
        case MachineJoined():
            joined.add(event.machine)
        case MachineLeft():
            joined.discard(event.machine)
        case _:
            pass


THERE: Final = msgspec.msgpack.encode(True)
GONE: Final = msgspec.msgpack.encode(False)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[Ad]).decode


def row_of(event: object) -> bytes:
    """
    The row of the working set of the machine or registered daemon that an event is of, after it: whether it is there, or the ads
    that are kept of it.
    """
    match event:
        case MachineLeft(slots=[_, *_] as slots):
            return _encode(slots)
        case AdKept(ad=ad):
            return _encode([ad])
        case MachineJoined() | AdHeard():
            return THERE
        case _:
            return GONE


def absence(row: bytes) -> list[Ad]:
    """The ads that are kept of an absent machine or daemon, by its row; none of any other."""
    return [] if row in {THERE, GONE} else _decode(row)


def _whole(ad: Mapping[str, Scalar], *keys: str) -> int:
    for key in keys:
        value = ad.get(key)
        if isinstance(value, int | float):
            return int(value)
    return 0
