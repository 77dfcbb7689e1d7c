"""
The entries that a watcher of a bucket has received, so that it can also be notified of entries that a lost bucket took
with it.
"""

from kettle.bus.ports import KeyChange


class WatchedKeys:
    """
    The existing keys, and those of a lost bucket that were not sent again yet. Times are seconds of any clock.
    """

    def __init__(self) -> None:
        self._keys: set[str] = set()
        self._missing: set[str] = set()
        self._until = 0.0

    def lost(self, until: float) -> None:
        """The bucket was recreated, empty: entries that are not sent again in time count as deleted."""
        self._missing |= self._keys
        self._keys = set()
        self._until = until

    def record_change(self, change: KeyChange) -> None:
        """Record a change that the watcher receives."""
        self._missing.discard(change.key)
        if change.value is None:
            self._keys.discard(change.key)
        else:
            self._keys.add(change.key)

    def gone(self, now: float) -> list[KeyChange]:
        """The deletions that the watcher has to receive now."""
        if not self._missing or now < self._until:
            return []
        missing, self._missing = self._missing, set()
        return [KeyChange(key, None, 0) for key in sorted(missing)]
