"""Machines of any layout for the properties of their slots, and the simplest way to count what they have."""

from collections import Counter

from hypothesis import strategies as st

from kettle.classad import parse
from kettle_services.startd.domain.slots.layout import LayoutError, SlotType, lay_out
from kettle_services.startd.domain.slots.resources import Carving, Resources
from kettle_services.startd.domain.slots.slot import Slot, device
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions

IDS = tuple("abcd")
SHARES = st.one_of(st.just("auto"), st.integers(0, 5), st.sampled_from(["25%", "50%", "1/3", "12.5%"]))
TYPES = st.lists(
    st.builds(
        SlotType,
        count=st.integers(0, 3),
        partitionable=st.booleans(),
        cpus=SHARES,
        memory=st.one_of(st.just("auto"), st.integers(0, 3000), st.just("10%")),
        disk=st.one_of(st.just("auto"), st.integers(0, 20_000)),
        resources=st.fixed_dictionaries({"GPUs": SHARES, "Licences": SHARES}),
    ),
    max_size=4,
)
WISHES = ("IS_OWNER", "WANT_SUSPEND", "SUSPEND", "CONTINUE", "PREEMPT", "WANT_VACATE", "KILL", "WANT_HOLD")
POLICY = PolicyExpressions(
    {name: f"MY.{name} ?: false" for name in WISHES}
    | {"START": "MY.START_NOW ?: true", "MaxJobRetirementTime": "40", "CLAIM_WORKLIFE": "300"}
    | {"RANK": "TARGET.Liking ?: 0"}
)
"""A policy that wants whatever the test says that the machine is like."""
TOTALS = st.builds(
    Resources,
    cpus=st.integers(1, 8),
    memory=st.integers(1, 8000),
    disk=st.integers(1, 100_000),
    custom=st.fixed_dictionaries({"GPUs": st.integers(0, 4), "Licences": st.integers(0, 3)}),
)


def facts(types: list[SlotType], total: Resources, *, must: bool = False) -> Facts:
    ids = IDS[: total.custom["GPUs"]]
    try:
        slots = lay_out(types, total, {"GPUs": ids})
    except LayoutError:
        slots = lay_out([], total, {"GPUs": ids})  # a machine cannot be started with the others
    return Facts(
        name="host",
        total=total,
        detected=total,
        slots=slots,
        devices={"GPUs": {each: device(each, {"Capability": n}) for n, each in enumerate(ids)}},
        carving=Carving(modify={"Memory": parse("quantize(RequestMemory, {700})")}, must=must),
        policy=POLICY,
    )


def sums(amounts: list[Resources]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each.named())
    return total


def overdrawn(machine: Machine) -> set[str]:
    """What claims have more of than the machine, because its layout has changed under them."""
    everybody = sums([claim.resources for claim in (*machine.claims.values(), *machine.waiting.values())])
    total = machine.facts.total.named()
    return {name for name, amount in everybody.items() if amount > total.get(name, 0)}


def left_of(machine: Machine, slot: Slot) -> Counter[str]:
    """What nobody has of a slot, and of the machine, counted in the simplest way."""
    waiting = list(machine.waiting.values())
    own = sums(
        [claim.resources for claim in (*machine.claims_on(slot), *waiting) if claim.parent == slot.number]
    )
    everybody = sums([claim.resources for claim in (*machine.claims.values(), *waiting)])
    left: Counter[str] = Counter()
    for name, amount in slot.total.named().items():
        left[name] = max(0, min(amount - own[name], machine.facts.total.named()[name] - everybody[name]))
    used = {each for claim in (*machine.claims.values(), *waiting) for each in claim.devices.get("GPUs", [])}
    left["GPUs"] = len(set(slot.devices["GPUs"]) - used)
    return left
