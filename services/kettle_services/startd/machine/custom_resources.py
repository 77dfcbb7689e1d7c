"""The custom resources of the machine: those that the administrator names, and GPUs where there are some."""

import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kettle.execution.system.gpus import find_gpus
from kettle.execution.system.nvidia import PROC
from kettle.runtime import SettingsError
from kettle_services.startd.domain.slots.slot import Device, attribute_of, device
from kettle_services.startd.domain.state.resource_spelling import GPUS
from kettle_services.startd.machine.resource_discovery import Found, discover
from kettle_services.startd.settings import StartdSettings
from kettle_wire.ads import Ad

_log: Final = logging.getLogger(__name__)
_TAG: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
_ID: Final = re.compile(r"[^\s,\"\\]+")
_Ids = TypeVar("_Ids", list[str], dict[str, Ad])
_TAKEN: Final = frozenset({"cpus", "memory", "disk", "swap", "slots"})


class Inventory(msgspec.Struct, frozen=True):
    """What may be given away."""

    counts: dict[str, int]
    """By tag; of what has ids too."""
    devices: dict[str, dict[str, Device]]
    """Of what has ids: by tag, by id."""
    offline: dict[str, list[str]]


def take_inventory(settings: StartdSettings, *, proc: Path = PROC) -> Inventory:
    """
    What the settings name, else what the administrator's program tells, else the GPUs that are found.

    Raises:
        SettingsError: a setting names what cannot be, or the program fails.
    """
    found: Found = {
        tag: given if isinstance(given, int) else _listed(tag, given)
        for tag, given in settings.machine_resources.items()
    }
    named = {tag.lower() for tag in found}
    found |= {tag: more for tag, more in _discovered(settings, proc).items() if tag.lower() not in named}
    _check_tags(found)
    found = {GPUS if tag.lower() == GPUS.lower() else tag: said for tag, said in found.items()}
    offline = _known(settings, settings.offline_machine_resources, found, "OFFLINE_MACHINE_RESOURCES")
    extra = _known(settings, settings.machine_resource_properties, found, "MACHINE_RESOURCE_PROPERTIES")
    counts: dict[str, int] = {}
    devices: dict[str, dict[str, Device]] = {}
    for tag, said in found.items():
        if isinstance(said, int):
            counts[tag] = said
            continue
        online = [each for each in said if each not in offline.get(tag, ())]
        devices[tag] = {each: device(each, said[each] | extra.get(tag, {}).get(each, {})) for each in online}
        counts[tag] = len(online)
    _check_names(devices)
    return Inventory(counts, devices, {tag: ids for tag, ids in offline.items() if ids})


def _discovered(settings: StartdSettings, proc: Path) -> Found:
    found = discover(settings.discovery) if settings.discovery else {}
    told = {tag.lower() for tag in (*settings.machine_resources, *found)}
    if settings.discover_gpus and GPUS.lower() not in told:
        gpus = find_gpus(proc)
        if gpus is not None:
            found[GPUS] = gpus
    return found


def _listed(tag: str, ids: Sequence[str]) -> dict[str, Ad]:
    if len(set(ids)) < len(ids):
        raise SettingsError(f"KETTLE_STARTD_MACHINE_RESOURCES: {tag} names an id twice.")
    return {each: {} for each in ids}


def _check_tags(found: Found) -> None:
    seen: set[str] = set()
    for tag, said in found.items():
        if not _TAG.fullmatch(tag) or tag.lower() in _TAKEN or tag.lower() in seen:
            raise SettingsError(
                f"KETTLE_STARTD_MACHINE_RESOURCES: {tag!r} cannot be the name of a resource: two or more letters, "
                "digits and _, none of Cpus, Memory, Disk, and each only once."
            )
        seen.add(tag.lower())
        if isinstance(said, int) and said < 0:
            raise SettingsError(f"KETTLE_STARTD_MACHINE_RESOURCES: {tag} cannot be {said}.")


def _check_names(devices: Mapping[str, Mapping[str, Device]]) -> None:
    for tag, known in devices.items():
        names: dict[str, str] = {}
        for each in known:
            if not _ID.fullmatch(each):
                raise SettingsError(f"KETTLE_STARTD_MACHINE_RESOURCES: {tag}: {each!r} cannot be an id.")
            other = names.setdefault(attribute_of(tag, each).lower(), each)
            if other != each:
                raise SettingsError(
                    f"KETTLE_STARTD_MACHINE_RESOURCES: {tag}: {other!r} and {each!r} are too much alike: letters and "
                    "digits must differ."
                )


def _known(settings: StartdSettings, said: Mapping[str, _Ids], found: Found, setting: str) -> dict[str, _Ids]:
    """
    What a setting says by tag, by the tags as they are spelt where they are named.

    What the settings name themselves has to be there; what is looked for may have failed, which is no reason to be
    without the rest of the machine.
    """
    spelt = {tag.lower(): tag for tag in found}
    listed = {tag.lower() for tag in settings.machine_resources}
    known: dict[str, _Ids] = {}
    for given, ids in said.items():
        tag = spelt.get(given.lower())
        there = found[tag] if tag is not None else {}
        absent = [each for each in ids if isinstance(there, int) or each not in there]
        if tag is not None:
            known[tag] = ids
        if tag is not None and not absent:
            continue
        what = (
            f"the machine has no {given}; it has {', '.join(found) or 'no such resource'}."
            if tag is None
            else f"{tag}: there is no {', '.join(map(repr, absent))}; there is {_ids(there)}."
        )
        looked_for = settings.discovery or given.lower() == GPUS.lower()
        if given.lower() in listed or not looked_for:
            raise SettingsError(f"KETTLE_STARTD_{setting}: {what}")
        _log.warning(
            "a setting is about what the machine does not have", extra={"setting": setting, "cause": what}
        )
    return known


def _ids(there: int | Mapping[str, Ad]) -> str:
    return (", ".join(there) if not isinstance(there, int) else "") or "none with an id"
