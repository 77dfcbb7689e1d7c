"""
What a job's ad says of the machines that the job has been given: attributes of their slots, and their names, newest first.

Pure.  JobMachineAttrs asks for MachineAttr<name>0, the one before is MachineAttr<name>1, and so on for as many as
JobMachineAttrsHistoryLength says; LastMatchListLength asks for LastMatchName0 and so on.
"""

import re
from collections.abc import Sequence
from typing import Final

from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad, Scalar

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MOST: Final = 50
"""Of either kind: the event of each assignment has them."""


def machine_notes(
    job: Ad, slot: str, slot_ad: Ad, now: float, *, system: Sequence[str] = (), history: int = 1
) -> Ad:
    """
    What a job's ad says from now on; `system` are the attributes that the site wants of all jobs, `history` of how many
    machines if the job says nothing else.
    """
    seen = ClassAd.from_wire(slot_ad)
    names = {name.lower(): name for name in (*system, *_listed(job.get("JobMachineAttrs")))}
    length = min(_whole(job.get("JobMachineAttrsHistoryLength"), history), _MOST)
    notes: Ad = {}
    for name in list(names.values())[:_MOST]:
        if (value := _value(seen, name, now)) is not None:
            notes |= _shifted(job, f"MachineAttr{name}", value, length)
    notes |= _ports(job)
    return notes | _shifted(job, "LastMatchName", slot, min(_whole(job.get("LastMatchListLength"), 0), _MOST))


def _ports(job: Ad) -> Ad:
    """
    Where the services of a container are reached: it shares its machine's network, so at their own ports.
    """
    said = {name.lower(): value for name, value in job.items()}
    names = _listed(job.get("ContainerServiceNames"))[:_MOST]
    return {
        f"{name}_HostPort": port
        for name in names
        if isinstance(port := said.get(f"{name.lower()}_containerport"), int)
    }


def _shifted(job: Ad, prefix: str, newest: Scalar, length: int) -> Ad:
    """The newest value, and those before it each one place further."""
    values: list[Scalar] = [newest]
    for place in range(length - 1):
        if (value := job.get(f"{prefix}{place}")) is None:
            break
        values.append(value)
    return {f"{prefix}{place}": value for place, value in enumerate(values[:length])}


def _listed(given: Scalar | None) -> list[str]:
    if not isinstance(given, str):
        return []
    return [name for name in re.split(r"[\s,]+", given) if _NAME.fullmatch(name)]


def _whole(given: Scalar | None, default: int) -> int:
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else default


def _value(slot: ClassAd, name: str, now: float) -> Scalar | None:
    """A plain value; lists, ads, undefined and error are none."""
    if name not in slot:
        return None
    try:
        value = evaluate_attribute(name, slot, context=evaluation.at(now))
    except EvaluationFailed:
        return None
    return value if isinstance(value, bool | int | float | str) else None
