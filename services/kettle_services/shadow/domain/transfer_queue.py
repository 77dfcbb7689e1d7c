"""
Whose files may move now, when not all may at once: users in turn, what one user has in the order in which it came.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Turns(Generic[K]):
    """At most so many at once have their turn."""

    def __init__(self, most: int) -> None:
        """`most` 0: there is no limit."""
        self._most = most
        self._active: set[K] = set()
        self._waiting: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(places) for places in self._waiting.values())

    def ask(self, who: K, user: str) -> bool:
        """
        Whether it is its turn; if not, it has a place in its user's queue. Asking again changes nothing.
        """
        if who not in self._active:
            self._waiting.setdefault(user, OrderedDict()).setdefault(who)
            self._advance()
        return who in self._active

    def done(self, who: K) -> list[K]:
        """It moves nothing more, or does not want to any more; whose turn it is now that was waiting."""
        self._active.discard(who)
        for user in list(self._waiting):
            self._leave(user, who)
        return self._advance()

    def _advance(self) -> list[K]:
        given: list[K] = []
        while self._waiting and (not self._most or len(self._active) < self._most):
            user = next(iter(self._waiting))
            who = next(iter(self._waiting[user]))
            self._leave(user, who)
            if user in self._waiting:
                self._waiting.move_to_end(user)  # the next turn is somebody else's
            self._active.add(who)
            given.append(who)
        return given

    def _leave(self, user: str, who: K) -> None:
        self._waiting[user].pop(who, None)
        if not self._waiting[user]:
            del self._waiting[user]
