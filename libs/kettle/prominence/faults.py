"""
What is wrong with a document.

    DocumentRefused    it has faults; all of them are told at once
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from kettle_wire.prominence.faults import Fault

__all__ = ["DocumentRefused", "Fault", "below", "require_none"]

_MOST_TOLD: Final = 1000
"""Faults of one document: more would help nobody."""


class DocumentRefused(ValueError):  # noqa: N818 - a refusal is no error of ours
    """The document has faults; its message is the first one's sentence."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = list(faults)
        super().__init__(self.faults[0].sentence)


def require_none(faults: Iterable[Fault]) -> None:
    """Raise DocumentRefused if there are any."""
    if found := list(islice(faults, _MOST_TOLD)):
        raise DocumentRefused(found)


def below(pointer: str, *parts: str | int) -> str:
    """The pointer to a part of what another one points to (RFC 6901)."""
    return pointer + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
