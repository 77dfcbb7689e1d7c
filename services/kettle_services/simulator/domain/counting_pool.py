"""
A negotiator's picture of a simulated pool in which claimed slots only count, as long as nobody can be matched to them.

Of slots that are alike the first ones are filled first, so their order decides who gets which. It is the one that it would be if
claimed slots were in the table as well, where what goes is replaced by what is last: who asks for explanations, for which they have
to be there, gets the same simulation.
"""

import numpy as np
import numpy.typing as npt

from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.slot_states import user_of
from kettle_wire.ads import Ad


class CountingPool(Pool):
    """`Pool`, whose slots have places besides the rows of its table."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[str] = []
        self._places: dict[str, int] = {}
        self._moved = False
        """Whether places may be in another order than rows."""

    def slot(self, key: str, ad: Ad | None) -> None:
        """See `Pool.slot`."""
        self._moved |= ad is None and key in self.slots
        super().slot(key, ad)
        self._place(key, there=ad is not None)

    def change(self, key: str, attributes: Ad) -> None:
        """
        A slot's ad came that differs from the one before in nothing but these attributes, which that had, too; nobody has the slot.
        """
        self.stirred |= self._given.pop(key, None) is not None
        before = self.slots.news
        self.slots.change(key, attributes)
        if self.slots.news != before:
            self.stirred = True
            self.states.note(key)

    def count(self, key: str, ad: Ad | None) -> None:
        """
        The ad of a claimed slot came, or went, which can be matched to nobody: it counts, and is not among `slots`.
        """
        machine = key.partition(".")[0]
        if ad is not None and self._unshown.awaits(machine) and (user := user_of(ad.get)):
            self._unshown.shown(machine, user)
        self.stirred = True
        self.states.count(key, None if ad is None else ad.get)
        self._place(key, there=ad is not None)

    def counts(self, key: str) -> bool:
        """Whether a slot only counts."""
        return key in self.states.counted

    def _place(self, key: str, *, there: bool) -> None:
        keys, places = self._keys, self._places
        if there:
            if key not in places:
                places[key] = len(keys)
                keys.append(key)
            return
        place = places.pop(key, None)
        if place is None:
            return
        last = keys.pop()
        if last != key:
            keys[place], places[last] = last, place
            self._moved |= last in self.slots

    def free_rows(self) -> npt.NDArray[np.int64]:
        """See `Pool.free_rows`; by their places."""
        rows = super().free_rows()
        if not self._moved:
            return rows
        places = np.array([self._places[self.slots.keys[row]] for row in rows.tolist()], np.int64)
        return rows[np.argsort(places)]
