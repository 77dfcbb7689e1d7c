"""Custom resources from the output of an administrator's program, in the format of condor_gpu_discovery."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from kettle.classad import ClassAd, ClassAdParseError, EvaluationFailed, Value, evaluate, parse
from kettle.execution.system.probe_programs import ask
from kettle.runtime import SettingsError
from kettle_wire.ads import Ad

Found = dict[str, int | dict[str, Ad]]
"""By tag: how many, or the devices' properties by id."""

_NOT_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
_DETECTED: Final = "detected"


def discover(command: Sequence[str]) -> Found:
    """
    Run the program.

    Raises:
        SettingsError: it fails, or says what cannot be understood.
    """
    said = "KETTLE_STARTD_DISCOVERY"
    try:
        told = ask(command)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SettingsError(f"{said}: {command[0]} cannot be run: {error}.") from error
    if told.status:
        why = told.err.strip()[:500] or "it said nothing"
        raise SettingsError(f"{said}: {command[0]} ended with {told.status}: {why}.")
    return parse_discovery(told.out)


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
            found[tag] = {each: _said_of(each, said) for each in _ids(name, value)}
        else:
            raise SettingsError(
                f"KETTLE_STARTD_DISCOVERY: {name} is neither a number nor a list of ids in a string."
            )
    return found


def _ids(name: str, text: str) -> list[str]:
    ids = text.replace(",", " ").split()
    for each in ids:
        if ids.count(each) > 1:
            raise SettingsError(
                f"KETTLE_STARTD_DISCOVERY: {name} has {each} more than once, but a device is given to one job at a time."
            )
    return ids


def _said_of(each: str, said: Mapping[str, Value]) -> Ad:
    """The properties of one device: of all devices, of its kind (CUDA of CUDA0), and its own."""
    own, kind = _NOT_NAME.sub("_", each).lower(), each.rstrip("0123456789").lower()
    ad: Ad = {}
    for wanted in filter(None, ("common", kind, own)):  # a number is of no kind
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
