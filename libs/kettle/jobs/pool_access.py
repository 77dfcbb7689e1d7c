"""Jobs that may command the queue that they are in, as their owner."""

from collections.abc import Mapping
from typing import Final

ATTRIBUTE: Final = "WantPoolAccess"
"""By the submit command `want_pool_access`, Kettle's own."""

SESSION: Final = "KettleSession"
"""What a job was submitted by that a job has submitted: an attempt of that one."""


def session_of(schedd: str, job: object, attempt: int) -> str:
    """The name of an attempt, in the ads of what it submits and in its tokens."""
    return f"{schedd}#{job}#{attempt}"


def wants_access(ad: Mapping[str, object]) -> bool:
    """Whether its owner wanted that; an expression is no yes."""
    return ad.get(ATTRIBUTE) is True
