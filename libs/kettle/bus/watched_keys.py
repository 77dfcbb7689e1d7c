"""What a watcher of a bucket was told, so that what a lost bucket took with it can be told, too."""

from kettle.bus.ports import KeyChange


class WatchedKeys:
    """
    The keys that are there, and those of a lost bucket that nobody has sent again yet. Times are seconds of any clock.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._missing: set[str] = set()
        self._until = 0.0

    def lost(self, until: float) -> None:
        """The bucket was made again, empty: what is not sent again by then is gone."""
        self._missing |= self._keys
        self._keys = set()
        self._until = until

    def record_change(self, change: KeyChange) -> None:
        """Take in what the watcher is told."""
        self._missing.discard(change.key)
        if change.value is None:
            self._keys.discard(change.key)
        else:
            self._keys.add(change.key)

    def gone(self, now: float) -> list[KeyChange]:
        """What the watcher has to be told now."""
        if not self._missing or now < self._until:
            return []
        missing, self._missing = self._missing, set()
        return [KeyChange(key, None, 0) for key in sorted(missing)]
