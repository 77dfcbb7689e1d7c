"""STARTD_CRON: the programs that HTCondor's startd runs again and again are probes here."""

import re
from typing import Final

from kettle.pool.personal_settings import Value
from kettle_services.cli.condor_config.families import Family
from kettle_services.cli.condor_config.values import NoValueError, command_line, words

_PERIOD: Final = re.compile(r"\s*(\d+)\s*([smh]?)\s*", re.IGNORECASE)
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600}
_PREFIX: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)?")
_ELSEWHERE: Final = {
    "MODE": "probes are periodic: {} does not exist here",
    "ENV": 'write environment = {{ NAME = "value" }} into the probe for {}',
    "SLOTS": "probes are of the whole machine, and {} says of single slots",
    "CONDITION": "probes run without a condition such as {}",
}


def probes(family: Family) -> Value | None:
    """The programs of STARTD_CRON_JOBLIST, each with what is said about it."""
    found: list[Value] = []
    for name in words(family.take("STARTD_CRON_JOBLIST")):
        knob = f"STARTD_CRON_{name}"
        executable = family.take(f"{knob}_EXECUTABLE").strip()
        if not executable.startswith("/"):
            family.refuse(f"{knob}_EXECUTABLE", "a probe needs the absolute path of its program")
            continue
        probe: dict[str, Value] = {
            "kind": "program",
            "name": name,
            "command": [executable, *command_line(family.take(f"{knob}_ARGS"))],
        }
        for key, setting, convert in (
            ("PERIOD", "period", _seconds),
            ("PREFIX", "prefix", _prefix),
            ("CWD", "directory", str.strip),
        ):
            if (value := family.carried(f"{knob}_{key}", convert)) is not None:
                probe[setting] = value
        for key, why in _ELSEWHERE.items():
            if (text := family.take(f"{knob}_{key}").strip()) and text.lower() != "periodic":
                family.refuse(f"{knob}_{key}", why.format(text))
        found.append(probe)
    return found or None


def _seconds(text: str) -> Value:
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise NoValueError(f"'{text}' is no time: a number with s, m or h")
    return float(max(1, int(found[1]) * _SECONDS[found[2].lower()]))


def _prefix(text: str) -> Value:
    if _PREFIX.fullmatch(text.strip()) is None:
        raise NoValueError(f"'{text}' cannot be the beginning of a name")
    return text.strip()
