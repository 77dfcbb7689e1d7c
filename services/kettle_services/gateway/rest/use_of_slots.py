"""What machines are used for, from the ads of their slots."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.rest.machine_use import AboutMachines, MachineMap, MachineState, MachineUse, UsedBy

ATTRIBUTES: Final = (
    "Machine",
    "State",
    "Draining",
    "Offline",
    "SlotType",
    "Cpus",
    "TotalCpus",
    "RemoteOwner",
    "EnteredCurrentState",
    "Arch",
    "OpSys",
)
"""Of slots, which are looked at."""
_STATES: Final[tuple[MachineState, ...]] = ("busy", "partly", "free", "owner", "drained", "backfill")
_CLAIMED: Final = frozenset({"Claimed", "Preempting", "Matched"})


def machine_uses(slots: Iterable[Ad]) -> list[MachineUse]:
    """One for each machine that has a slot, by name."""
    machines: dict[str, list[Ad]] = defaultdict(list)
    for slot in slots:
        if slot.get("Offline") is True:  # it sleeps
            continue
        if slot.get("SlotType") != "Local":  # its jobs belong to the access point and take none of the cores
            machines[str(slot.get("Machine", ""))].append(slot)
    return [_use(name, machines[name]) for name in sorted(machines)]


def chosen(uses: Iterable[MachineUse], asked: AboutMachines) -> list[MachineUse]:
    """Those that are asked for."""
    states, owners, arches = frozenset(asked.state), frozenset(asked.owner), frozenset(asked.arch)
    return [
        use
        for use in uses
        if (not states or use.state in states)
        and (not arches or use.arch in arches)
        and (not owners or not owners.isdisjoint(each.owner for each in use.owners))
    ]


def machine_map(uses: Sequence[MachineUse], at: datetime) -> MachineMap:
    """Machines as columns; what repeats is a number into a list of names."""
    owners, arches = _Names(), _Names()
    return MachineMap(
        at=at,
        names=[use.name for use in uses],
        state=[_STATES.index(use.state) for use in uses],
        states=list(_STATES),
        since=[int(use.since.timestamp()) for use in uses],
        cores=[use.cores for use in uses],
        used=[use.used for use in uses],
        owner=[owners.number(use.owners[0].owner if use.owners else "") for use in uses],
        owners=owners.names,
        arch=[arches.number(use.arch) for use in uses],
        arches=arches.names,
    )


class _Names:
    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    @property
    def names(self) -> list[str]:
        return list(self._numbers)


def _use(name: str, slots: Sequence[Ad]) -> MachineUse:
    by: defaultdict[str, float] = defaultdict(float)
    claimed = [slot for slot in slots if slot.get("State") in _CLAIMED]
    for slot in claimed:
        by[str(slot.get("RemoteOwner", ""))] += _number(slot.get("Cpus"))
    one = slots[0]
    cores, used = _number(one.get("TotalCpus")), float(sum(by.values()))
    since = max(_number(slot.get("EnteredCurrentState")) for slot in slots)
    return MachineUse(
        name=name,
        state=_state(slots, cores, used, claimed=bool(claimed)),
        since=datetime.fromtimestamp(since, UTC),
        cores=cores,
        used=used,
        claims=len(claimed),
        owners=[
            UsedBy(owner=owner, cores=float(amount))
            for owner, amount in sorted(by.items(), key=lambda each: (-each[1], each[0]))
        ],
        arch=str(one.get("Arch", "")),
        os=str(one.get("OpSys", "")),
    )


def _state(slots: Sequence[Ad], cores: float, used: float, *, claimed: bool) -> MachineState:
    states = {slot.get("State") for slot in slots}
    if "Drained" in states or any(slot.get("Draining") is True for slot in slots):
        return "drained"
    if claimed:
        return "busy" if used >= cores else "partly"
    if "Backfill" in states:
        return "backfill"
    return "owner" if "Owner" in states else "free"


def _number(value: Scalar | None) -> float:
    """A plain number of an ad; 0 for anything else, which says nothing about use."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
