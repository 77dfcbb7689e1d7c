"""ALLOW_* and DENY_*: the lists of [authorization]."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from kettle.auth.mapping.access_lists import SUBSYSTEMS, entry_problem
from kettle.auth.mapping.levels import Level
from kettle.pool.personal_settings import Value
from kettle.runtime.authorization import TABLE
from kettle_services.cli.condor_config.families import Family
from kettle_services.cli.condor_config.values import words

_LEVELS: Final = "|".join(sorted((level.value for level in Level), key=len, reverse=True))


def lists(family: Family, kind: str) -> Value | None:
    """The lists of one kind, by LEVEL or LEVEL_SUBSYSTEM; `SCHEDD.ALLOW_WRITE` is ALLOW_WRITE_SCHEDD."""
    found: dict[str, Value] = {}
    for name in list(family.matching(rf"(?:(\w+)\.)?{kind}_({_LEVELS})(?:_(\w+))?")):
        subsystem = (name[1] or name[3] or "").upper()
        text = family.take(name[0])
        if subsystem and subsystem not in SUBSYSTEMS:
            family.refuse(name[0], f"there is no service {subsystem}")
            continue
        entries: list[str] = []
        for each in words(text):
            if why := entry_problem(each):
                family.refuse(name[0], why)
            else:
                entries.append(each)
        if entries:
            found[f"{name[2].upper()}_{subsystem}" if subsystem else name[2].upper()] = entries
    return found or None


ACCESS: Final[Mapping[str, Callable[[Family], Value | None]]] = {
    f"{TABLE}.allow": partial(lists, kind="ALLOW"),
    f"{TABLE}.deny": partial(lists, kind="DENY"),
}
"""By the field of [authorization] that each makes."""
