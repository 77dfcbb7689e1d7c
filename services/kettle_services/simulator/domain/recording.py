"""
What is recorded of a period, from the frames of all shards: each shard in its own order, one after the other.

Up to the period's begin it is the fold that the services themselves would make; from then on events are kept as they are.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle_services.negotiator.domain.principals import Principal, fold_into
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.simulator.domain.machine import Machine, bare, recorded
from kettle_services.simulator.domain.period import Happening, Period, latency
from kettle_services.simulator.domain.run_times import RunTimes
from kettle_services.simulator.domain.submitter_sums import Arrivals
from kettle_wire.ads import Ad, Scalar
from kettle_wire.event_expansion import expanded
from kettle_wire.events import (
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    JobCheckpointed,
    MachineJoined,
    MachineLeft,
    PrincipalEvent,
    decode,
)
from kettle_wire.frames import Entry, Frame

_COUNTS: Final = ("SlotType", "Cpus", "SlotWeight")
"""What of a claimed slot its owner is charged for."""
KINDS: Final = ("schedd", "collector", "negotiator")
"""Of shards of which something is to be known."""


class Recording:
    """Fed with frames; `shards` are the names of all that will be fed, each from its first frame on."""

    def __init__(self, since: int, until: int, shards: list[str], *, significant: Sequence[str] = ()) -> None:
        """`significant` are attributes by which schedds distinguish jobs besides those that always count."""
        self.since, self.until = since, until
        schedds = [shard for shard in shards if shard.partition(".")[0] == "schedd"]
        self._replays = {shard: Replay(shard.partition(".")[2], significant=significant) for shard in schedds}
        self._significant = tuple(significant)
        self._arrivals = {shard: Arrivals() for shard in schedds}
        self._works = {shard: RunTimes() for shard in schedds}
        self._begun: set[str] = set()
        self._principals: dict[str, Principal] = {}
        self._joined: dict[str, MachineJoined] = {}
        self._there: dict[str, None] = {}
        self._slots: dict[str, dict[int, Ad]] = {}
        self._happenings: list[Happening] = []
        self._streams: dict[str, str] = {}
        """Each name once, however many events have it."""
        self._worths: dict[tuple[tuple[str, Scalar], ...], Ad] = {}

    def feed(self, frame: Frame) -> None:
        """
        The next frame of a shard.

        Raises:
            UnknownEventError: an event of it cannot be read.
            Unfit: it does not follow what was fed.
        """
        match frame.shard.partition(".")[0]:
            case "schedd":
                self._feed_schedd(frame)
            case "collector" | "negotiator" if frame.at <= self.until:
                for entry in frame.entries:
                    self._feed_other(frame, entry)
            case _:
                pass

    # -- a schedd's --------------------------------------------------------------------------------------------------

    def _feed_schedd(self, frame: Frame) -> None:
        shard = frame.shard
        if frame.at <= self.since:
            self._replays[shard].feed(frame)
        elif shard not in self._begun:
            self._begun.add(shard)
            self._works[shard].forget()
        for entry in expanded(frame).entries:
            stream = entry.stream
            if frame.at <= self.since:
                event = self._known(entry)
            elif frame.at <= self.until:
                event = decode(entry.data)
                stream = self._streams.setdefault(entry.stream, entry.stream)
                self._happenings.append(Happening(frame.at, shard, stream, self._told(event)))
            else:
                event = self._known(entry)
            if event is not None:
                self._learn(frame, event)
            number = event.number if isinstance(event, JobCheckpointed) else 0
            self._works[shard].note(entry.type.partition("/")[0], stream, frame.at, number)

    @staticmethod
    def _known(entry: Entry) -> Event | None:
        """An event of which more than its type matters, whenever it came."""
        kind = entry.type.partition("/")[0]
        told = kind in {"job.checkpointed", "claim.granted", "factory.materialized"} or kind.endswith(
            ".submitted"
        )
        return decode(entry.data) if told else None

    def _learn(self, frame: Frame, event: Event) -> None:
        match event:
            case ClusterSubmitted(cluster=cluster, owner=owner):
                self._works[frame.shard].owned(cluster, owner)
                self._arrivals[frame.shard].note(event, frame.at)
            case FactoryMaterialized():
                self._arrivals[frame.shard].note(event, frame.at)
            case ClaimGranted(startd=startd, slot_ad=ad) if ad.get("SlotType") in {"Dynamic", "Static"}:
                slots = self._slots.setdefault(startd, {})
                number = ad.get("SlotID", 1)
                if isinstance(number, int) and (frame.at <= self.until or number not in slots):
                    slots[number] = ad
            case _:
                pass

    def _told(self, event: Event) -> Event:
        """An event of the period without what is looked at no more: of the slot of a claim, all but what it counts for."""
        if not isinstance(event, ClaimGranted):
            return event
        counts = tuple((name, event.slot_ad[name]) for name in _COUNTS if name in event.slot_ad)
        return msgspec.structs.replace(event, slot_ad=self._worths.setdefault(counts, dict(counts)))

    # -- of machines and of the accountant ---------------------------------------------------------------------------

    def _feed_other(self, frame: Frame, entry: Entry) -> None:
        if (
            entry.type.partition("/")[0] in {"cycle.negotiated", "principal.charged"}
            and frame.at > self.since
        ):
            return  # decisions of negotiators are computed again
        event = decode(entry.data)
        if frame.at > self.since:
            if isinstance(event, MachineJoined):
                self._joined[event.machine] = event
            self._happenings.append(Happening(frame.at, frame.shard, entry.stream, event))
            return
        match event:
            case MachineJoined(machine=machine):
                self._joined[machine] = event
                self._there[machine] = None
            case MachineLeft(machine=machine):
                self._there.pop(machine, None)
            case _ if isinstance(event, PrincipalEvent):
                fold_into(self._principals, event)
            case _:
                pass

    # -- what it comes to --------------------------------------------------------------------------------------------

    def period(self) -> Period:
        """All frames were fed."""
        for shard, works in self._works.items():
            if shard not in self._begun:
                works.forget()
        machines = {name: recorded(name, ads) for name, ads in self._slots.items() if ads}
        there = dict(self._there)
        for replay in self._replays.values():
            for claim in replay.queue().claims.values():
                if claim.granted.startd in machines and not claim.once:
                    there[claim.granted.startd] = None  # a collector may learn of it later than a schedd
        for name, joined in self._joined.items():
            if name not in machines:
                machines[name] = bare(name, joined.cpus, joined.memory, _like(joined, machines))
        happenings = sorted(self._happenings, key=lambda one: one.at)
        return Period(
            since=self.since,
            until=self.until,
            queues=lambda: {shard: replay.queue() for shard, replay in self._replays.items()},
            arrivals=self._arrivals,
            works=self._works,
            machines=machines,
            there=sorted(there),
            principals=self._principals,
            happenings=happenings,
            significant=self._significant,
            latency=latency(happenings, self._arrivals),
        )


def _like(joined: MachineJoined, machines: dict[str, Machine]) -> Machine | None:
    """Of those on which something ran, the one whose cores are nearest; of these the first by name."""
    ran = [machine for machine in machines.values() if not machine.guessed]

    def distance(machine: Machine) -> tuple[int, str]:
        cores = sum(slot.amounts.get("Cpus", 0) for slot in machine.slots)
        return abs(cores - joined.cpus), machine.name

    return min(ran, key=distance, default=None)
