"""What runs commands, and how they fail."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class CommandError(Exception):
    """A command gave no answer."""


class NotStartedError(CommandError):
    """Nothing was run."""


class HostRefusedError(NotStartedError):
    """The host does not take our key, or cannot prove that it is the one that is meant."""


class EndNotSeenError(CommandError):
    """It was run, perhaps, and nobody knows how it ended."""


class Ran(msgspec.Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: int
    """Its exit status; negative: the signal that ended it."""
    output: str
    errors: str


class Commands(Protocol):
    """Runs commands."""

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """
        Run one to its end, but no longer than `within` seconds, with the rights of an account (empty: ours).

        Raises:
            NotStartedError: it was not run.
            EndNotSeenError: its end was not seen, or it writes without end.
        """
        ...

    @property
    def lingering(self) -> float:
        """Seconds after its time limit at which a command whose end was not seen does not run any more."""
        ...

    async def close(self) -> None:
        """Give up connections."""
        ...
