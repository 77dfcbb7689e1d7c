"""
What is wrong with a pool file.

    PoolFileRefused    it has faults; all of them are told at once
"""

from collections.abc import Sequence

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    where: str
    """The file with the line; of a pool that is in no file, the keys that lead to it."""
    sentence: str

    def __str__(self) -> str:
        """The place and the sentence, as people read it."""
        return f"{self.where}: {self.sentence}" if self.where else self.sentence


class PoolFileRefused(ValueError):  # noqa: N818 - a refusal is no error of ours
    """The file has faults; its message has a line for each."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, faults)))


class ValueRefused(ValueError):  # noqa: N818 - what it becomes is a Fault
    """A value is not what its key wants; the message is the sentence, and the caller knows the place."""
