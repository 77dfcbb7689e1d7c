"""How soon a batch system is asked again about all of its jobs, so that it is neither late nor a burden."""

from typing import Final

LIVELY_S: Final = 60.0
"""So long after something has happened more is expected to."""
KNOWN_S: Final = 2.0
"""So late, at most, it is to be known what has changed."""
_LIVELY_SHARE: Final = 2.0
_QUIET_SHARE: Final = 20.0
"""Between two questions there are so many times as many seconds as the last one took."""


class Pace:
    """
    Questions about one batch system: each is about all jobs, and the next one begins after the last one has ended.

    While something happens they are asked for a third of the time, and for half of it where what changes would else be known later than
    `KNOWN_S`: it is if an answer takes up to a third of that.  When nothing happens they are asked for a twentieth of the time.
    """

    def __init__(self, least: float, most: float) -> None:
        """`least`: seconds from the beginning of a question to that of the next one; `most`: from its end."""
        self._least: Final = least
        self._most: Final = most
        self._happened = float("-inf")

    def happened(self, now: float) -> None:
        """A job was submitted, is in another state, or was told something."""
        self._happened = now

    def pause(self, took: float, now: float) -> float:
        """Seconds until the next question, if the last one took so many."""
        pause = _QUIET_SHARE * took
        if now - self._happened < LIVELY_S:
            # What changes once a question is on its way is in the answer to the next one.
            pause = max(took, min(_LIVELY_SHARE * took, KNOWN_S - 2 * took))
        return min(self._most, max(self._least - took, pause))
