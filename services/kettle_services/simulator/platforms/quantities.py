"""Durations, rates and sizes as people write them in files of simulations: a number, or one with its unit."""

import re
from typing import Final

_FORM: Final = re.compile(r"\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)\s*([A-Za-z/]*)\s*")
_SECONDS: Final = {
    "": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
_PREFIXES: Final = {
    "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip
_RATES: Final = {
    "": 1.0,
    **{f"{prefix}B/s": float(factor) for prefix, factor in _PREFIXES.items()},
    **{f"{prefix}bit/s": factor / 8.0 for prefix, factor in _PREFIXES.items()},
}
_BYTES: Final = {"": 1.0, **{f"{prefix}B": float(factor) for prefix, factor in _PREFIXES.items()}}
_MEBIBYTES: Final = {"": 1.0, **{f"{prefix}B": factor / 2**20 for prefix, factor in _PREFIXES.items()}}


Quantity = float | str
"""A number in the usual unit, or text with one."""


class QuantityError(ValueError):
    """What was written is none; the message says what it can be."""


def seconds(written: float | str) -> float:
    """Of `"1.5 h"`, or a number of seconds.  Raises QuantityError."""
    return _number(written, _SECONDS, "a duration")


def microseconds(written: float | str) -> int:
    """A duration in whole microseconds.  Raises QuantityError."""
    return round(seconds(written) * 1e6)


def bytes_per_second(written: float | str) -> float:
    """Of `"1Gbit/s"` or `"100 MB/s"`, or a number of bytes per second.  Raises QuantityError."""
    return _number(written, _RATES, "a bandwidth")


def mebibytes(written: float | str) -> int:
    """Of `"16 GiB"`, or a number of MiB.  Raises QuantityError."""
    return round(_number(written, _MEBIBYTES, "a size"))


def whole_bytes(written: float | str) -> int:
    """Of `"5 GB"`, or a number of bytes.  Raises QuantityError."""
    return round(_number(written, _BYTES, "a size"))


def _number(written: float | str, units: dict[str, float], what: str) -> float:
    if not isinstance(written, str):
        return float(written)
    form = _FORM.fullmatch(written)
    if form is None or form[2] not in units:
        raise QuantityError(
            f"{written!r} is not {what}: a number, and one of the units {', '.join(filter(None, units))}"
        )
    return float(form[1]) * units[form[2]]
