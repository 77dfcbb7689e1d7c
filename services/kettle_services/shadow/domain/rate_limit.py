"""How much a job may have recorded of what it says of itself: so much at once, and so much in an hour."""


class Allowance:
    """Full at the beginning; `hourly` pieces come back in an hour, and it holds no more than `most`."""

    def __init__(self, most: float, hourly: float, now: float) -> None:
        """`now` in seconds, on a clock that never goes back."""
        self._most = most
        self._rate = hourly / 3600.0
        self._left = most
        self._at = now

    def take(self, pieces: float, now: float) -> bool:
        """Take some; False, and nothing is taken, if there are not enough."""
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if pieces > self._left:
            return False
        self._left -= pieces
        return True
