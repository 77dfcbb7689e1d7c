"""
Whose files may move now, when not all may at once: users in turn, what one user has in the order in which it came.
"""

import math
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Turns(Generic[K]):
    """At most so many at once have their turn."""

    def __init__(self, most: int, *, unused: float = math.inf) -> None:
        """
        `most` 0: there is no limit. `unused`: who has not asked for so many seconds is gone, with its turn or its place; who
        asks again after that is new.
        """
        self._most = most
        self._unused = unused
        self._active: set[K] = set()
        self._waiting: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        self._asked: OrderedDict[K, float] = OrderedDict()
        """When each of them has asked last, the longest ago first."""

    def __len__(self) -> int:
        return sum(len(places) for places in self._waiting.values())

    def ask(self, who: K, user: str, now: float = 0.0) -> bool:
        """
        Whether it is its turn; if not, it has a place in its user's queue, which asking again keeps.

        `now` in seconds matters only where turns that are not used end.
        """
        self._asked[who] = now
        self._asked.move_to_end(who)
        while now - self._asked[first := next(iter(self._asked))] > self._unused:
            self._remove(first)
        if who not in self._active:
            self._waiting.setdefault(user, OrderedDict()).setdefault(who)
            self._advance()
        return who in self._active

    def done(self, who: K) -> list[K]:
        """It moves nothing more, or does not want to any more; whose turn it is now that was waiting."""
        self._remove(who)
        return self._advance()

    def _remove(self, who: K) -> None:
        self._asked.pop(who, None)
        self._active.discard(who)
        for user in list(self._waiting):
            self._leave(user, who)

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
