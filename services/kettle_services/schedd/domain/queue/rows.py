"""The rows of the queue's working set, as a fold of an event changes them."""

from typing import Final

import msgspec

NEWEST: Final = "cluster#newest"
"""
The row of the working set with the number of the newest cluster: numbers are not used again when all jobs have left.
"""
LEFT: Final = "#left"
"""Part of the names of rows that record which jobs of a cluster have left."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """A row of the working set after an event, which has its version; `state` None: the row is deleted."""

    stream: str
    state: bytes | None
