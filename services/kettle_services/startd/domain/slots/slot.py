"""The slots that a machine is divided into, and the devices that belong to them."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.classad import ClassAd, unparse
from kettle_services.startd.domain.slots.resources import Resources
from kettle_wire.ads import Ad, Expr

_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]")

LOCAL: Final = 0
"""
Number of the slot of the jobs that run where they were submitted: it is not a part of the machine that is shared out.
"""


class Device(msgspec.Struct, frozen=True):
    """One piece of a custom resource that has an id, with what is known about it."""

    id: str
    properties: Ad
    nested: Expr
    """Id and properties as one nested ad."""


def device(name: str, properties: Ad) -> Device:
    """A device with these properties, whose nested ad has its id too."""
    known = {key: value for key, value in properties.items() if key.lower() != "id"}
    return Device(name, known, Expr(unparse(ClassAd.from_wire({"Id": name, **known}))))


Devices = Mapping[str, Mapping[str, Device]]
"""By tag, then by id."""


def attribute_of(tag: str, name: str) -> str:
    """The attribute of a slot that describes a device."""
    return f"{tag}_{_NOT_NAME.sub('_', name)}"


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the machine: given to a claim as a whole, or (`partitionable`) carved into dynamic slots."""

    number: int
    """From 1; its name is `slot<number>@<machine>`.  `LOCAL` is `local@<machine>`."""
    type: int
    """Number of the slot type, from 1; 0 is the one slot of a machine whose slots nobody has described."""
    partitionable: bool
    total: Resources
    devices: dict[str, tuple[str, ...]] = {}
    """Ids that belong to it, by tag."""


def local_slot(total: Resources) -> Slot:
    """
    The slot of the jobs of the local and the scheduler universe.

    Each of them may have as much as the whole machine has, and all together some multiple of it.
    """
    return Slot(number=LOCAL, type=0, partitionable=True, total=msgspec.structs.replace(total, custom={}))


def whole_machine(total: Resources, devices: Mapping[str, tuple[str, ...]] | None = None) -> tuple[Slot, ...]:
    """One partitionable slot with everything."""
    return (Slot(number=1, type=0, partitionable=True, total=total, devices=dict(devices or {})),)
