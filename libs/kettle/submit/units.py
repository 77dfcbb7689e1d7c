"""Amounts of memory and disk in the forms that people write: `1.5 GB`, `512K`."""

import math
import re
from typing import Final

_AMOUNT: Final = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*(?:([KMGTP])B?)?", re.IGNORECASE)
_KIB: Final = {"K": 1, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30, "P": 1 << 40}


def amount(text: str, *, unit: str) -> int | None:
    """
    A literal amount in `unit` (K or M, binary), rounded away from zero; None if the text is something else.
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        return None
    number = float(match[1]) * _KIB[(match[2] or unit).upper()] / _KIB[unit]
    return math.ceil(number) if number >= 0 else math.floor(number)
