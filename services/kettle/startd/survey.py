"""
The machine as it will be advertised: what it has, what of it is given away, and in which slots.
"""

import shutil
import time
from pathlib import Path

from kettle.classad import ClassAd, ClassAdParseError, Node, parse
from kettle.execution.sandbox import Sandbox
from kettle.runtime import SettingsError
from kettle.startd import host
from kettle.startd.domain.ads import slot_ad, weight_of
from kettle.startd.domain.layout import LayoutError, lay_out
from kettle.startd.domain.machine import Facts, Machine
from kettle.startd.domain.resources import STANDARD, Carving, Resources
from kettle.startd.inventory import Inventory, take_inventory
from kettle.startd.settings import StartdSettings
from kettle.startd.usable import usable_cpus, usable_memory


def survey(settings: StartdSettings, execute: Path) -> Facts:
    """
    Look at the machine; `execute` is where the sandboxes are.

    Raises:
        SettingsError: a setting cannot be: an expression that is none, slots that the machine has no room for.
    """
    _expression("START", settings.start)
    inventory = take_inventory(settings)
    detected = Resources(
        cpus=usable_cpus(),
        memory=usable_memory(),
        disk=_disk(execute),
        custom=inventory.counts,
    )
    total = Resources(
        cpus=settings.num_cpus or detected.cpus,
        memory=settings.memory or detected.memory,
        disk=settings.disk or detected.disk,
        custom=inventory.counts,
    )
    ids = {tag: tuple(known) for tag, known in inventory.devices.items()}
    try:
        slots = lay_out(settings.slot_types, total, ids)
    except LayoutError as error:
        raise SettingsError(f"KETTLE_STARTD_SLOT_TYPES: {error}") from error
    facts = Facts(
        name=host.machine_name(settings),
        total=total,
        detected=detected,
        slots=slots,
        devices=inventory.devices,
        offline=inventory.offline,
        carving=_carving(settings, inventory),
        start=settings.start,
        weight=settings.slot_weight,
        attributes={**host.platform_attributes(), **settings.attributes},
        started=int(time.time()),
    )
    _check_weight(facts)
    return facts


def _disk(execute: Path) -> int:
    """
    KiB that jobs have or could have: what is free, and what those already wrote that run while the startd is begun anew.
    """
    written = sum(Sandbox(str(path)).size_kib() for path in execute.glob("dir_*"))
    usage = shutil.disk_usage(execute)
    return min(usage.total, usage.free + (written << 10)) >> 10


def _expression(setting: str, text: str) -> Node:
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise SettingsError(f"KETTLE_STARTD_{setting}: {error}") from error


def _carving(settings: StartdSettings, inventory: Inventory) -> Carving:
    spelt = {name.lower(): name for name in (*STANDARD, *inventory.counts)}
    modify: dict[str, Node] = {}
    for name, text in settings.modify_request_expr.items():
        if name.lower() not in spelt:
            raise SettingsError(
                f"KETTLE_STARTD_MODIFY_REQUEST_EXPR: the machine has no {name}; it has {', '.join(spelt.values())}."
            )
        modify[spelt[name.lower()]] = _expression(f"MODIFY_REQUEST_EXPR: {name}", text)
    return Carving(modify=modify, must=settings.must_modify_request_exprs)


def _check_weight(facts: Facts) -> None:
    weight = _expression("SLOT_WEIGHT", facts.weight)
    empty = Machine(facts, capability="")
    for slot in facts.slots:
        ad = ClassAd.from_wire(slot_ad(empty, slot, now=0.0))
        if weight_of(weight, ad) is None:
            raise SettingsError(
                f"KETTLE_STARTD_SLOT_WEIGHT: {facts.weight} is no number for {facts.slot_name(slot.number)}."
            )
