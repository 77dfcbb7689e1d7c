"""A period with other machines."""

from collections.abc import Sequence
from math import floor

import msgspec

from kettle_services.simulator.domain.machine import Machine, bare, changed, renamed
from kettle_services.simulator.domain.period import Happening, Period
from kettle_wire.ads import Ad
from kettle_wire.events import MachineJoined, MachineLeft


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """Machines that are there from the begin of the period on."""

    count: int
    cpus: int
    memory: int
    """MiB."""
    like: str = ""
    """The machine that says what else they say of themselves; empty: any."""


def with_machines(
    period: Period, *, scale: float = 1.0, said: Ad | None = None, add: Sequence[Addition] = ()
) -> Period:
    """
    `scale` times as many machines, spread evenly over their names, all with the attributes in `said`, and some more
    machines.

    Of 4 machines and a scale of 1.5 the 2nd and the 4th are there twice; with 0.5 only these two are there.
    """
    copies: dict[str, list[str]] = {}
    for place, name in enumerate(sorted(period.machines)):
        count = floor((place + 1) * scale) - floor(place * scale)
        copies[name] = [name if copy == 0 else f"again{copy + 1}.{name}" for copy in range(count)]
    machines = {
        copy: changed(renamed(period.machines[name], copy), said or {})
        for name, made in copies.items()
        for copy in made
    }
    there = [copy for name in period.there for copy in copies[name]]
    for number, addition in enumerate(add, 1):
        for made in _added(period, number, addition):
            machines[made.name] = changed(made, said or {})
            there.append(made.name)
    happenings = [copy for one in period.happenings for copy in _copied(one, copies)]
    return msgspec.structs.replace(period, machines=machines, there=sorted(there), happenings=happenings)


def _added(period: Period, number: int, addition: Addition) -> list[Machine]:
    ran = [name for name in sorted(period.machines) if not period.machines[name].guessed]
    like = addition.like or next(iter(ran), "")
    model = period.machines.get(like)
    return [
        bare(f"added{number}-{place}", addition.cpus, addition.memory, model)
        for place in range(1, addition.count + 1)
    ]


def _copied(one: Happening, copies: dict[str, list[str]]) -> list[Happening]:
    if not isinstance(one.event, MachineJoined | MachineLeft):
        return [one]
    return [
        msgspec.structs.replace(one, event=msgspec.structs.replace(one.event, machine=copy))
        for copy in copies.get(one.event.machine, [])
    ]
