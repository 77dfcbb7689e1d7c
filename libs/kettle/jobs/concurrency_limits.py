"""
Concurrency limits: of what the pool has only so many, licences for example, and how many of these each job uses. Pure.

`ConcurrencyLimits` of a job is `name` or `name:number`, several with commas; `prefix.name` has the prefix's default.
"""

import re
from decimal import Decimal
from typing import Final

_PREFIX: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_NAME: Final = rf"{_PREFIX}(?:\.[A-Za-z0-9_]+)?"
_LIMIT: Final = re.compile(rf"({_NAME})(?::([0-9]+(?:\.[0-9]+)?))?")
MOST: Final = 64
"""Limits of one job."""
LEAST: Final = 1e-6
LARGEST: Final = 1e15
"""Between these is what a job uses of one limit: whatever is added up or divided by it stays a number."""
_LONGEST: Final = 128
_LONGEST_TEXT: Final = 2_048


class LimitsError(ValueError):
    """A text names no limits; the message says what is wrong with it."""


def is_name(text: str) -> bool:
    """Whether jobs can name a limit so."""
    return re.fullmatch(_NAME, text) is not None and len(text) <= _LONGEST


def is_prefix(text: str) -> bool:
    """Whether a limit's name can begin so, before its dot."""
    return re.fullmatch(_PREFIX, text) is not None and len(text) < _LONGEST - 1


def limits_of(text: str) -> dict[str, float]:
    """
    How much of each limit is used, by its name in lower case, sorted; who names one twice uses both.

    Raises LimitsError.
    """
    if len(text) > _LONGEST_TEXT:
        raise LimitsError(
            f"the concurrency limits take {len(text):,} characters, and at most {_LONGEST_TEXT:,} may be written"
        )
    used: dict[str, float] = {}
    for part in re.split(r"[,\s]+", ":".join(piece.strip() for piece in text.split(":"))):
        if not part:
            continue
        found = _LIMIT.fullmatch(part)
        if found is None or len(found[1]) > _LONGEST:
            raise LimitsError(f"'{part}' is no concurrency limit: write NAME or NAME:NUMBER")
        name = found[1].lower()
        used[name] = used.get(name, 0.0) + float(found[2] or 1.0)
        if not LEAST <= used[name] <= LARGEST:
            raise LimitsError(
                f"'{part}' is out of range: a job uses between 0.000001 and {LARGEST:.0f} of a limit"
            )
    if len(used) > MOST:
        raise LimitsError(f"there are {len(used)} concurrency limits, and at most {MOST} may be")
    return dict(sorted(used.items()))


def text_of(used: dict[str, float]) -> str:
    """Inverse of `limits_of`, in the form of job ads."""
    return ",".join(name if number == 1 else f"{name}:{_fixed(number)}" for name, number in used.items())


def _fixed(number: float) -> str:
    """Without an exponent, which is no part of a limit's number."""
    return f"{Decimal(f'{number:.15g}'):f}"
