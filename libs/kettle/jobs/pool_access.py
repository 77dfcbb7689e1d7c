"""Jobs that may command the queue that they are in, as their owner."""

from collections.abc import Mapping
from typing import Final

ATTRIBUTE: Final = "WantPoolAccess"
"""By the submit command `want_pool_access`, Kettle's own."""


def wants_access(ad: Mapping[str, object]) -> bool:
    """Whether its owner wanted that; an expression is no yes."""
    return ad.get(ATTRIBUTE) is True
