"""
The custom resources of the machine: those that the administrator names, and GPUs where there are some.
"""

import csv
import logging
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kettle.classad import ClassAd, ClassAdParseError, EvaluationFailed, Value, evaluate, parse
from kettle.runtime import SettingsError
from kettle.startd.domain.slots import Device, attribute_of, device
from kettle.startd.settings import StartdSettings
from kettle.wire.ads import Ad, Scalar

_log: Final = logging.getLogger(__name__)
GPUS: Final = "GPUs"
PROC_NVIDIA: Final = Path("/proc/driver/nvidia/gpus")
_PATIENCE_S: Final = 30.0
"""For a program to list devices; the first call after a boot may load a driver."""
_TAG: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]+")
_ID: Final = re.compile(r"[^\s,\"\\]+")
_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_DETECTED: Final = "detected"
_T = TypeVar("_T")
_TAKEN: Final = frozenset({"cpus", "memory", "disk", "swap", "slots"})
_FIELDS: Final[Mapping[str, str]] = {
    "uuid": "Id",
    "name": "DeviceName",
    "memory.total": "GlobalMemoryMb",
    "driver_version": "DriverVersion",
    "pci.bus_id": "DevicePciBusId",
    "compute_cap": "Capability",
}
"""What nvidia-smi is asked for; drivers before 470 do not know the last."""

Found = dict[str, int | dict[str, Ad]]
"""By tag: how many, or the devices' properties by id."""


class Inventory(msgspec.Struct, frozen=True):
    """
    What may be given away.
    """

    counts: dict[str, int]
    """By tag; of what has ids too."""
    devices: dict[str, dict[str, Device]]
    """Of what has ids: by tag, by id."""
    offline: dict[str, list[str]]


def take_inventory(settings: StartdSettings, *, proc: Path = PROC_NVIDIA) -> Inventory:
    """
    What the settings name, else what the administrator's program tells, else the GPUs that are found.

    Raises:
        SettingsError: a setting names what cannot be, or the program fails.
    """
    found: Found = {}
    for tag, given in settings.machine_resources.items():
        found[tag] = given if isinstance(given, int) else _listed(tag, given)
    named = {tag.lower() for tag in found}
    for tag, more in _discovered(settings, proc).items():
        if tag.lower() not in named:
            found[tag] = more
    _check_tags(found)
    offline = _by_tag(settings.offline_machine_resources, found, "OFFLINE_MACHINE_RESOURCES")
    extra = _by_tag(settings.machine_resource_properties, found, "MACHINE_RESOURCE_PROPERTIES")
    _check_ids(offline, found, "OFFLINE_MACHINE_RESOURCES")
    _check_ids(extra, found, "MACHINE_RESOURCE_PROPERTIES")
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
    if settings.discovery:
        return parse_discovery(_output(settings.discovery))
    named = {tag.lower() for tag in settings.machine_resources}
    gpus = find_gpus(proc) if settings.discover_gpus and GPUS.lower() not in named else {}
    return {GPUS: gpus} if gpus else {}


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


def _by_tag(said: Mapping[str, _T], found: Found, setting: str) -> dict[str, _T]:
    """
    What a setting says by tag, by the tags as they are spelt where they are named.
    """
    spelt = {tag.lower(): tag for tag in found}
    for tag in said:
        if tag.lower() not in spelt:
            raise SettingsError(
                f"KETTLE_STARTD_{setting}: the machine has no {tag}; it has {', '.join(found) or 'no such resource'}."
            )
    return {spelt[tag.lower()]: value for tag, value in said.items()}


def _check_ids(said: Mapping[str, Iterable[str]], found: Found, setting: str) -> None:
    for tag, ids in said.items():
        known = found[tag]
        there: Iterable[str] = () if isinstance(known, int) else known
        for each in ids:
            if each not in there:
                raise SettingsError(
                    f"KETTLE_STARTD_{setting}: {tag}: there is no {each!r}; there is {', '.join(there) or 'none with an id'}."
                )


def find_gpus(proc: Path = PROC_NVIDIA) -> dict[str, Ad]:
    """
    NVIDIA's GPUs with their properties by id; what nvidia-smi tells, else what the driver does.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return _gpus_of_driver(proc)
    said = ""
    for fields in (list(_FIELDS), list(_FIELDS)[:-1]):
        asked = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            _log.warning("no GPUs found: nvidia-smi cannot be run", extra={"cause": str(error)})
            return {}
        if not done.returncode:
            return _gpus_of_table(done.stdout, fields)
        said = (done.stderr or done.stdout).strip()[:500]
    _log.warning("no GPUs found: nvidia-smi failed", extra={"said": said})
    return {}


def _gpus_of_table(text: str, fields: Sequence[str]) -> dict[str, Ad]:
    gpus: dict[str, Ad] = {}
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(fields):
            _log.warning("a line of nvidia-smi is not understood", extra={"line": ", ".join(row)[:200]})
            continue
        said = dict(zip(fields, row, strict=True))
        gpus[said["uuid"]] = {
            _FIELDS[field]: _scalar(value)
            for field, value in said.items()
            if field != "uuid" and value[:1] != "["
        }  # "[N/A]", "[Not Supported]"
    return gpus


def _scalar(text: str) -> Scalar:
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[0-9]+\.[0-9]+", text) else text


def _gpus_of_driver(proc: Path) -> dict[str, Ad]:
    """
    What the driver's files tell; a device that the driver has not begun to use has no id there, and is left out.
    """
    gpus: dict[str, Ad] = {}
    for path in sorted(proc.glob("*/information")):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            _log.warning("a GPU cannot be read about", extra={"cause": str(error)})
            continue
        said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        name = said.get("GPU UUID", "")
        if not name or "?" in name:
            _log.warning("a GPU has no id yet: nvidia-smi would give it one", extra={"path": str(path)})
            continue
        gpus[name] = {"DeviceName": said.get("Model", ""), "DevicePciBusId": said.get("Bus Location", "")}
    return gpus


def _output(command: Sequence[str]) -> str:
    said = "KETTLE_STARTD_DISCOVERY"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise SettingsError(f"{said}: {command[0]} cannot be run: {error}.") from error
    if done.returncode:
        why = done.stderr.strip()[:500] or "it said nothing"
        raise SettingsError(f"{said}: {command[0]} ended with {done.returncode}: {why}.")
    return done.stdout


def parse_discovery(text: str) -> Found:
    """
    What a program like condor_gpu_discovery prints: lines `Name=value`.

    `Detected<tag>="id, id"` (or a number) says what there is, `<id>=[Capability=8.0; ...]` (with _ for what is no letter
    or digit) what is known about one, `Common=[...]` what is known about all.

    Raises:
        SettingsError: a line is something else.
    """
    said: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, expression = line.partition("=")
        try:
            said[name.strip()] = evaluate(parse(expression))
        except (ClassAdParseError, EvaluationFailed) as error:
            raise SettingsError(f"KETTLE_STARTD_DISCOVERY: line {number} of its output: {error}.") from error
    found: Found = {}
    for name, value in said.items():
        tag = name[len(_DETECTED) :]
        if not name.lower().startswith(_DETECTED) or not tag:
            continue
        if isinstance(value, int):
            found[tag] = int(value)
        elif isinstance(value, str):
            found[tag] = {each: _said_of(each, said) for each in value.replace(",", " ").split()}
        else:
            raise SettingsError(
                f"KETTLE_STARTD_DISCOVERY: {name} is neither a number nor a list of ids in a string."
            )
    return found


def _said_of(each: str, said: Mapping[str, Value]) -> Ad:
    """
    The properties of one device: of all devices, of its kind (CUDA of CUDA0), and its own.
    """
    own, kind = _NOT_NAME.sub("_", each).lower(), each.rstrip("0123456789").lower()
    ad: Ad = {}
    for wanted in ("common", kind, own):
        for name, value in said.items():
            lower = name.lower()
            if lower == wanted and isinstance(value, ClassAd):
                ad |= value.to_wire()
            elif (
                wanted in {kind, own}
                and lower.startswith(wanted)
                and isinstance(value, bool | int | float | str)
            ):
                property_ = name[len(wanted) :].lstrip("_")
                if property_[:1].isalpha():
                    ad[property_] = value
    return {key: value for key, value in ad.items() if key.lower() != "id"}
