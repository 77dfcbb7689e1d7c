"""How soon a batch system is asked again about all of its jobs, so that it is neither late nor a burden."""

from typing import Final

LIVELY_S: Final = 60.0
"""So long after something has happened more is expected to."""
_LIVELY_SHARE: Final = 2.0
_QUIET_SHARE: Final = 20.0
"""Between two questions there are so many times as many seconds as the last one took."""


class Pace:
    """
    Questions about one batch system: each is about all jobs, and the next one begins after the last one has ended.

    While something happens they are asked for at most a third of the time, so that what changes is known two seconds later if it answers
    within half a second; else for a twentieth.
    """

    def __init__(self, least: float, most: float) -> None:
        """Seconds between the end of a question and the next one, at least and at most."""
        self._least: Final = least
        self._most: Final = most
        self._happened = float("-inf")

    def happened(self, now: float) -> None:
        """A job was submitted, is in another state, or was told something."""
        self._happened = now

    def pause(self, took: float, now: float) -> float:
        """Seconds until the next question, if the last one took so many."""
        lively = now - self._happened < LIVELY_S
        return min(self._most, max(self._least, (_LIVELY_SHARE if lively else _QUIET_SHARE) * took))
