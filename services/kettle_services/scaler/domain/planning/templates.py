"""
The ads of slots that do not exist yet: what a machine of an offer would say, so that the matcher can be asked about it.

The START expression made here is also what the machine itself gets, so that what is planned and what happens follow from one text.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle.classad.printing import quoted_string
from kettle.matchmaking import Amounts
from kettle.matchmaking.machine_owners import of_group
from kettle_wire.ads import Ad, Expr
from kettle_wire.ads.types import Scalar
from kettle_wire.events.lease import Shape
from kettle_wire.leases import LIVES_ENOUGH, price_of
from kettle_wire.machine_abilities import UNLESS_TOLD
from kettle_wire.worker_pools import Offer, WorkerPool

MARGIN_S: Final = 60.0
"""A job has to be over so long before the machine is, for its files."""
_UNKNOWN_DISK_KIB: Final = 2**40
_KIB_PER_MB: Final = 1024
RUN_TIME: Final = ("AllowedExecuteDuration", "AllowedJobDuration")
"""Attributes of jobs: seconds that one may run at most; the first that it has counts."""
_LIMITS: Final = "TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory"
_LEARNED: Final = frozenset({"arch", "opsys", "opsysandver", "opsysmajorver", "opsyslongname", "microarch"})


def start_of(pool: WorkerPool, offer: Offer, alone: Amounts | None = None) -> str:
    """
    START of the machines of an offer, but for what every machine with a lease says of its life; empty: it is for everybody.

    `alone`: what the one job asks that a machine is made for; smaller ones are not to take its place.
    """
    clauses = [f"({offer.start})"] if offer.start.strip() else []
    if pool.owners:
        clauses.append(f"member(TARGET.Owner, {{{', '.join(map(quoted_string, pool.owners))}}})")
    if pool.groups:
        clauses.append(" || ".join(map(of_group, pool.groups)).join("()"))
    if alone is not None:
        asked = alone.asked
        clauses.append(
            f"TARGET.RequestCpus >= {asked['Cpus']:.15g} && TARGET.RequestMemory >= {asked['Memory']:.15g}"
        )
    return " && ".join(clauses)


def slot_ad(
    name: str,
    pool: WorkerPool,
    offer: Offer,
    *,
    life: float,
    start: str,
    shape: Shape = Shape.SHARED,
    learned: Mapping[str, Scalar] | None = None,
    attributes: Mapping[str, str] | None = None,
) -> Ad:
    """
    The slot that a machine of this name will have, which lives for so many seconds from when it is ready.

    `learned`: what machines of the same template were seen to say; `attributes`: expressions besides those of the offer.
    """
    amounts: Ad = {
        "Cpus": offer.cpus,
        "Memory": offer.memory,
        "Disk": offer.disk * _KIB_PER_MB or _UNKNOWN_DISK_KIB,
        **({"GPUs": offer.gpus} if offer.gpus else {}),
    }
    places = {"Site": offer.site, "Region": offer.region, "Zone": offer.zone}
    said = {**offer.attributes, **(attributes or {})}
    return {
        "Arch": "X86_64",
        "OpSys": "LINUX",
        **UNLESS_TOLD,
        **(learned or {}),
        "MyType": "Machine",
        "Name": f"slot1@{name}",
        "Machine": name,
        "State": "Unclaimed",
        "Activity": "Idle",
        "PartitionableSlot": shape is Shape.SHARED,
        "DynamicSlot": False,
        **amounts,
        **{f"TotalSlot{key}": value for key, value in amounts.items()},
        "SlotWeight": offer.cpus,
        "TimeToLive": int(life - MARGIN_S),
        "KettlePool": pool.name,
        **{key: place for key, place in places.items() if place},
        **price_of(offer),
        **{key: Expr(text) for key, text in said.items()},
        "WithinResourceLimits": Expr(_LIMITS),
        "Start": Expr(f"{start} && {LIVES_ENOUGH}" if start else LIVES_ENOUGH),
        "Requirements": Expr("START && WithinResourceLimits"),
    }


def as_free(ad: Ad) -> Ad:
    """The slot of a machine as it will be when that one has woken."""
    return {**ad, "State": "Unclaimed", "Activity": "Idle", "Draining": False}


def learned_from(slot: Mapping[str, Scalar]) -> dict[str, Scalar] | None:
    """
    What the slot of a machine tells about others of its template: what they run, and what they are able to do.  None: it is
    still finding that out, and what it does not say yet is not to be believed of others.
    """
    if slot.get("TryingContainers") is True:
        return None
    return {
        name: value
        for name, value in slot.items()
        if name.lower() in _LEARNED or (name[:3].lower() == "has" and isinstance(value, bool | str))
    }


def names(pools: Sequence[WorkerPool]) -> list[tuple[WorkerPool, Offer]]:
    """All offers, in the order in which pool files have them."""
    return [(pool, offer) for pool in pools for offer in pool.offers]
