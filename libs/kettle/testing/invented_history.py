"""
A past that never was, as its log would have it: who submitted what, on which machines it ran, and what was set.

Times are seconds after `BEGIN`; frames come shard by shard, in the order of time.
"""

from typing import Final

from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    MachineJoined,
    MachineLeft,
    PrincipalSet,
    encode,
    tag_of,
)
from kettle_wire.events.principal import Setting
from kettle_wire.frames import Entry, Frame

BEGIN: Final = 1_700_000_000
"""Seconds since the epoch."""
US: Final = 1_000_000
SCHEDD, COLLECTOR, NEGOTIATOR = "schedd.ap", "collector", "negotiator"
SHARDS: Final = [COLLECTOR, NEGOTIATOR, SCHEDD]


def moment(seconds: float) -> int:
    """So many seconds after the beginning, in microseconds since the epoch."""
    return BEGIN * US + round(seconds * US)


class InventedHistory:
    """What is recorded."""

    def __init__(self) -> None:
        self._events: list[tuple[int, str, str, Event]] = []
        self._clusters = 0
        self._claims = 0

    def record(self, at: float, shard: str, stream: str, event: Event) -> None:
        """Any event."""
        self._events.append((moment(at), shard, stream, event))

    def machine(self, name: str, *, cpus: int, memory: int = 65_536, at: float = -10.0) -> None:
        """A machine came."""
        event = MachineJoined(machine=name, cpus=cpus, memory=memory)
        self.record(at, COLLECTOR, f"machine/{name}", event)

    def leaves(self, name: str, at: float) -> None:
        """It went."""
        self.record(at, COLLECTOR, f"machine/{name}", MachineLeft(machine=name, reason="drained"))

    def factor(self, name: str, value: float, *, at: float = -10.0, setting: Setting = "factor") -> None:
        """An administrator set a priority factor, or something else of a submitter."""
        event = PrincipalSet(principal=name, setting=setting, value=value, at=BEGIN + at, by="root")
        self.record(at, NEGOTIATOR, f"principal/{name}", event)

    def submit(
        self, owner: str, *, at: float = 0.0, jobs: int = 1, seconds: int | list[int] = 60, **more: Scalar
    ) -> int:
        """
        Jobs that nobody has seen running, and that are allowed to take so long; the number of their cluster.
        """
        self._clusters += 1
        ad: Ad = {
            "RequestCpus": 1,
            "RequestMemory": 128,
            "RequestDisk": 1024,
            "Requirements": Expr("TARGET.Memory >= RequestMemory"),
            **more,
        }
        each = seconds if isinstance(seconds, list) else [seconds] * jobs
        event = ClusterSubmitted(
            cluster=self._clusters,
            owner=owner,
            ad=ad,
            columns=["AllowedExecuteDuration"],
            rows=[[one] for one in each],
        )
        self.record(at, SCHEDD, f"cluster/{self._clusters}", event)
        return self._clusters

    def ran(
        self,
        cluster: int,
        proc: int,
        submitter: str,
        slot: str,
        began: float,
        ended: float | None,
        **more: Scalar,
    ) -> None:
        """One of the jobs had a claim of its own on a slot, until it had run to its end."""
        self._claims += 1
        claim, stream = f"ap#{self._claims}", f"job/{cluster}.{proc}"
        startd = slot.partition("@")[2]
        ad: Ad = {
            "Name": slot, "Machine": startd, "SlotType": "Dynamic", "DynamicSlot": True, "SlotID": 1, "TotalSlots": 1,
            "Cpus": 1, "Memory": 128, "Disk": 1024, "TotalSlotCpus": 1, "TotalSlotMemory": 128, "TotalSlotDisk": 1024,
            "TotalCpus": 4, "TotalMemory": 8192, "TotalDisk": 1_000_000, "SlotWeight": 1, "State": "Claimed",
            "Requirements": Expr("START"), "START": True, **more,
        }  # fmt: skip
        granted = ClaimGranted(
            claim=claim, startd=startd, slot=slot, slot_ad=ad, submitter=submitter, autocluster=0, lease=60.0
        )
        self.record(began, SCHEDD, f"claim/{claim}", granted)
        assigned = JobAssigned(attempt=1, claim=claim, slot=slot, startd=startd)
        self.record(began, SCHEDD, stream, assigned)
        if ended is not None:
            self.record(ended, SCHEDD, stream, JobCompleted(attempt=1, exit=ExitRecord(code=0)))
            self.record(ended, SCHEDD, f"claim/{claim}", ClaimEnded(claim=claim, reason="done"))

    def frames(self) -> list[Frame]:
        """The log: a frame for each event."""
        found: list[Frame] = []
        for shard in SHARDS:
            events = sorted((one for one in self._events if one[1] == shard), key=lambda one: one[0])
            for number, (at, _, stream, event) in enumerate(events, 1):
                entry = Entry(stream, 1, tag_of(event), encode(event))
                found.append(
                    Frame(shard=shard, epoch=1, number=number, position=number, at=at, entries=[entry])
                )
        return found
