"""
A job that has run out of memory or disk: what it asks for in its next run, if it says that there is more.

Pure.  RetryRequestMemory is a list of amounts, each more than the one before; or NextRequestMemory is an expression over
RequestMemory, and MaxRequestMemory its bound.  The same for RequestDisk.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kettle.classad import ClassAd, EvaluationFailed, Value, evaluate, evaluate_attribute, parse
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.codes import HoldCode, HoldSubcode

_RESOURCES: Final[Mapping[int, str]] = {HoldSubcode.Memory: "RequestMemory", HoldSubcode.Disk: "RequestDisk"}
"""HoldReasonSubCode -> what was too little."""
_LARGEST: Final = 1 << 53


def grown(ad: Ad, ending: Ending, now: float) -> Ad:
    """What a job asks for from now on that would be held for this; nothing: it is to be held."""
    attribute = _RESOURCES.get(ending.subcode) if ending.code == HoldCode.JobOutOfResources else None
    if attribute is None or not any(f"{kind}{attribute}" in ad for kind in ("Retry", "Next")):
        return {}
    seen, context = ClassAd.from_wire(ad), evaluation.at(now)

    def number(name: str) -> int | None:
        try:
            value = evaluate_attribute(name, seen, context=context) if name in seen else None
        except EvaluationFailed:
            return None
        return _amount(value)

    had = number(attribute)
    if had is None:
        return {}
    steps = _list(seen, f"Retry{attribute}", now)
    following = number(f"Next{attribute}")
    if following is not None and (most := number(f"Max{attribute}")) is not None:
        following = min(following, most)
    more = next((step for step in steps if step > had), following)
    return {attribute: more} if more is not None and more > had else {}


def _list(ad: ClassAd, name: str, now: float) -> list[int]:
    if name not in ad:
        return []
    found: list[int] = []
    try:
        size = evaluate(parse(f"size({name})"), my=ad, context=evaluation.at(now))
        for index in range(size if isinstance(size, int) else 0):
            amount = _amount(evaluate(parse(f"{name}[{index}]"), my=ad, context=evaluation.at(now)))
            found += [amount] if amount is not None else []
    except EvaluationFailed:
        return []
    return found


def _amount(value: Value | None) -> int | None:
    """A whole amount, rounded up; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return None
    return math.ceil(value)
