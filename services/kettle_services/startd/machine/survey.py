"""The machine as it will be advertised: what it has, what of it is given away, and in which slots."""

import shutil
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.classad import ClassAd, Node, parse
from kettle.execution.sandbox.directory import Sandbox
from kettle.runtime import SettingsError
from kettle_services.startd.domain.ads import slot_ad, startd_ad, weight_of
from kettle_services.startd.domain.slots.layout import LayoutError, lay_out
from kettle_services.startd.domain.slots.resources import STANDARD, Carving, Resources
from kettle_services.startd.domain.slots.slot import local_slot, whole_machine
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_services.startd.machine import host
from kettle_services.startd.machine.custom_resources import Inventory, take_inventory
from kettle_services.startd.machine.detected_limits import usable_cpus, usable_memory
from kettle_services.startd.machine.job_accounts import local_account
from kettle_services.startd.settings import StartdSettings

_PARTS: Final = ("", "Total", "TotalSlot", "TotalSlotAvailable", "Assigned", "Available", "Offline", "Child")
"""What stands before a resource's name in ads."""
OF_CLAIMS: Final = frozenset(
    [
        "accountinggroup",
        "childactivity",
        "childname",
        "childremoteuser",
        "childstate",
        "clientmachine",
        "dslotid",
        "globaljobid",
        "jobid",
        "jobstart",
        "parentslotid",
        "preemptingaccountinggroup",
        "preemptingowner",
        "preemptingrank",
        "preemptinguser",
        "publicclaimid",
        "remoteowner",
        "remotescheddname",
        "remoteuser",
        "trouble",
    ]
)
"""What slots say while they are claimed."""
_WORDS: Final = frozenset(
    ["error", "false", "is", "isnt", "my", "other", "parent", "self", "target", "true", "undefined"]
)
"""What means something else in an expression."""


def survey(settings: StartdSettings, execute: Path) -> Facts:
    """
    Look at the machine; `execute` is where the sandboxes are.

    Raises:
        SettingsError: a setting cannot be: an expression that is none, slots that the machine has no room for.
    """
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
        policy=PolicyExpressions(settings.policy),
        user_preemption=settings.user_preemption,
        local=local_slot(total) if settings.local_jobs else None,
        local_overcommit=settings.local_overcommit,
        max_lease=settings.max_lease,
        local_policy=PolicyExpressions({"MachineMaxVacateTime": settings.policy["MachineMaxVacateTime"]}),
        local_account=local_account(),
        weight=settings.slot_weight,
        attributes={**host.platform_attributes(), **host.job_account(settings), **settings.attributes},
        started=int(time.time()),
    )
    _check_tags(facts)
    _check_weight(facts)
    return facts


def _disk(execute: Path) -> int:
    """
    KiB that jobs have or could have: what is free, and what running jobs have already written when the startd starts.
    """
    written = sum(Sandbox(str(path)).size_kib() for path in execute.glob("dir_*"))
    usage = shutil.disk_usage(execute)
    return min(usage.total, usage.free + (written << 10)) >> 10


def _carving(settings: StartdSettings, inventory: Inventory) -> Carving:
    spelt = {name.lower(): name for name in (*STANDARD, *inventory.counts)}
    modify: dict[str, Node] = {}
    for name, text in settings.modify_request_expr.items():
        if name.lower() not in spelt:
            raise SettingsError(
                f"KETTLE_STARTD_MODIFY_REQUEST_EXPR: the machine has no {name}; it has {', '.join(spelt.values())}."
            )
        modify[spelt[name.lower()]] = parse(text)
    return Carving(modify=modify, must=settings.must_modify_request_exprs)


def _check_tags(facts: Facts) -> None:
    """
    A resource is called nothing that ads say already, also not with what is put before and behind its name.
    """
    bare = msgspec.structs.replace(facts.total, custom={})
    nothing = msgspec.structs.replace(facts, total=bare, slots=whole_machine(bare), devices={}, offline={})
    empty = Machine(nothing, capability="")
    said = slot_ad(empty, nothing.slots[0], now=0.0) | startd_ad(empty, now=0.0, version="")
    taken = {name.lower() for name in said} | OF_CLAIMS
    for tag in facts.total.custom:
        made = {f"{part}{tag}".lower() for part in _PARTS}
        if tag.lower() in _WORDS or made & taken:
            raise SettingsError(
                f"KETTLE_STARTD_MACHINE_RESOURCES: {tag} cannot be the name of a resource: the ads of slots say "
                "something else by that name."
            )


def _check_weight(facts: Facts) -> None:
    weight = parse(facts.weight)
    empty = Machine(facts, capability="")
    for slot in facts.slots:
        ad = ClassAd.from_wire(slot_ad(empty, slot, now=0.0))
        if weight_of(weight, ad) is None:
            raise SettingsError(
                f"KETTLE_STARTD_SLOT_WEIGHT: {facts.weight} is no number for {facts.slot_name(slot.number)}."
            )
