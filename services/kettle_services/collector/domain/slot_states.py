"""How many slots are in which state, kept up to date as their ads come and go."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kettle_services.collector.domain.ads import is_forwarded
from kettle_wire.ads import Scalar

_SLOTS: Final = "Machine."


class SlotStates:
    """Of the slots of this pool, those that other pools forward left out."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def heard(self, key: str, ad: Mapping[str, Scalar]) -> None:
        """An ad came, with its attributes by lower-case name."""
        if not key.startswith(_SLOTS) or is_forwarded(key):
            return
        state = ad.get("state")
        now = state if isinstance(state, str) else "Unknown"
        before = self._states.get(key)
        if before != now:
            self.gone(key)
            self._states[key] = now
            self._counts[now] += 1

    def gone(self, key: str) -> None:
        """An ad went."""
        if (before := self._states.pop(key, None)) is not None:
            self._counts[before] -= 1

    def counts(self) -> dict[str, int]:
        """Slots by state; a state that all have left is 0."""
        return dict(self._counts)
