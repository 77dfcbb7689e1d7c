"""
What a job is given when it has run out of memory or disk: more, and another run.

    request_memory = 1 GB, 4 GB, 8 GB          the first, then the second, ...
    retry_request_memory = 4 GB, 8 GB          the same beside request_memory
    retry_request_memory_increase = 1 GB       so much more each time, or an expression that refers to RequestMemory,
    retry_request_memory_max = 8 GB            up to this
"""

from itertools import pairwise
from typing import Final

import msgspec

from kettle.classad import references
from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import expression, scalar
from kettle.submit.lookup import Lookup, Setting, placed
from kettle.submit.units import amount
from kettle_wire.ads.types import Ad, Expr, Scalar

_GROWS: Final = (("memory", "RequestMemory", "M"), ("disk", "RequestDisk", "K"))


def first_of(given: Setting) -> Setting:
    """The first of several amounts."""
    steps = _amounts(given.text)
    return msgspec.structs.replace(given, text=steps[0]) if steps else given


def growth(lookup: Lookup, ad: Ad) -> Ad:
    """
    What more there is for a job that asks for what `ad` says; the schedd gives it when the job has run out of it.
    """
    found: Ad = {}
    for name, attribute, unit in _GROWS:
        first, more = lookup.get(f"request_{name}"), lookup.get(f"retry_request_{name}")
        steps = _amounts(first.text) if first else []
        if first and steps:
            found[f"Retry{attribute}"] = _steps(lookup, first, f"request_{name}", steps, unit, after=None)
        elif more:
            steps = [part.strip() for part in more.text.split(",")] if _amounts(more.text) else [more.text]
            found[f"Retry{attribute}"] = _steps(
                lookup, more, f"retry_request_{name}", steps, unit, after=ad.get(attribute)
            )
    increase, most = lookup.get("retry_request_memory_increase"), lookup.get("retry_request_memory_max")
    if "RetryRequestMemory" in found:
        for stray in (increase, most):
            if stray:
                lookup.idle(stray, "the steps of memory are given already: remove this line")
    elif increase:
        found["NextRequestMemory"] = _increase(increase)
        if most:
            found["MaxRequestMemory"] = _amount(most, most.text, "M")
    elif most:
        step = _amount(most, most.text, "M")
        found["RetryRequestMemory"] = Expr(f"{{{step.expr if isinstance(step, Expr) else step}}}")
    return found


def _amounts(text: str) -> list[str]:
    """Several amounts; none for anything else, such as a call with two arguments."""
    parts = [part.strip() for part in text.split(",")]
    plain = all(amount(part, unit="K") is not None for part in parts)
    return parts if plain and len(parts) > 1 else []


def _steps(
    lookup: Lookup, given: Setting, name: str, steps: list[str], unit: str, *, after: Scalar | None
) -> Expr:
    values = [_amount(given, step, unit) for step in steps]
    grown = values if after is None else [after, *values]
    known = [value for value in grown if isinstance(value, int)]
    if any(later <= earlier for earlier, later in pairwise(known)):
        lookup.idle(
            given, f"each amount of {name} must be more than the one before it, and than what is asked for"
        )
    shown = values[1:] if after is None else values
    texts = (value.expr if isinstance(value, Expr) else str(value) for value in shown)
    return Expr(f"{{{','.join(texts)}}}")


def _amount(given: Setting, text: str, unit: str) -> Scalar:
    found = amount(text, unit=unit)
    if found is not None:
        return found
    try:
        return scalar(text)
    except PlacelessError as error:
        raise placed(given, error) from error


def _increase(given: Setting) -> Expr:
    step = amount(given.text, unit="M")
    if step is not None and step > 0:
        return Expr(f"RequestMemory + {step}")
    try:
        names = {name.lower() for name in references(expression(given.text)).internal}
        names |= {name.lower() for name in references(expression(given.text)).external}
    except PlacelessError as error:
        raise placed(given, error) from error
    if "requestmemory" not in names:
        given.refuse(
            "retry_request_memory_increase must be an amount, as 1 GB, or an expression that refers to RequestMemory"
        )
    return Expr(given.text)
