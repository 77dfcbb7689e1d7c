"""
What was seen of machines since this process began, and is not recorded: to forget it costs time, and never a machine.

All times are seconds since the epoch, as those of the log.
"""

from typing import Final

import msgspec


class Absence(msgspec.Struct):
    """A machine that its provider does not show any more."""

    since: float
    """When a complete list was first without it."""
    lists: int = 0
    """Complete lists without it."""
    witness: bool = False
    """Whether the last of them had another machine of ours."""
    gone: int = 0
    """Times that its provider said that it is gone, when asked for it alone."""
    at: float = 0.0
    """When it last said so."""


class Seen:
    """What one process has seen."""

    def __init__(self, now: float) -> None:
        self.began: Final = now
        self.heard: Final[dict[str, float]] = {}
        """When a worker was heard of last, by its lease."""
        self.listed: Final[dict[str, float]] = {}
        """When a provider was last asked for all of its machines and answered."""
        self.visibility: Final[dict[str, float]] = {}
        """What providers say about how late they show a machine."""
        self.trouble: Final[dict[str, str]] = {}
        """Why a provider could not be asked the last time."""
        self.absent: Final[dict[str, Absence]] = {}
        """By the lease."""
        self.sound: float | None = None
        """Since when we hear what workers say, as far as we know; None: we do not."""
        self._looked: Final[dict[tuple[str, str], tuple[float, int]]] = {}

    def silent(self, lease: str, now: float) -> float:
        """For how many seconds nothing was heard of a worker that could have been heard."""
        if self.sound is None:
            return 0.0
        return now - max(self.heard.get(lease, 0.0), self.began, self.sound)

    def may_look(self, provider: str, handle: str, now: float, first: float, longest: float) -> bool:
        """Whether it is time to look at a machine, which then counts as done."""
        at, count = self._looked.get((provider, handle), (0.0, 0))
        if now < at + min(longest, first * 1.5 ** min(count, 40)) and count:
            return False
        self._looked[(provider, handle)] = (now, count + 1)
        return True

    def there(self, lease: str, provider: str, handle: str) -> None:
        """Its provider shows it."""
        self.absent.pop(lease, None)
        self._looked.pop((provider, handle), None)

    def forget(self, lease: str, provider: str, handle: str) -> None:
        """It is over."""
        self.heard.pop(lease, None)
        self.there(lease, provider, handle)
