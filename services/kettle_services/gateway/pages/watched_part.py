"""
The live part of a page, made once for all who watch the same with the same rights.

A part that was begun after the last change is the newest, no matter for whom it was made.  What somebody sees of his own jobs, others may not: such a
part is made for each owner, and once for all who own nothing on it.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Generator, Hashable
from contextlib import contextmanager
from typing import Final, Protocol

import msgspec

from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.pacing import Costs, Pace
from kettle_services.gateway.rest.refusals import RequestRefused

_ANYBODY: Final = ""


class MadePart(msgspec.Struct, frozen=True):
    """What a page's handler and template have made."""

    event: bytes
    """As a server-sent event."""
    owners: Collection[str] = ()
    """Who sees it otherwise than somebody else."""


class _Rendering(msgspec.Struct, frozen=True):
    """A part, and the time when it was begun; the clock is the caller's."""

    begun: float
    made: MadePart | RequestRefused


class TellsOfChanges(Protocol):
    """What knows of changes to the things that parts show."""

    def enter(self, part: "WatchedPart") -> None:
        """Tell this one from now on."""
        ...

    def leave(self, part: "WatchedPart") -> None:
        """Tell it no more."""
        ...


class WatchedPart:
    """One of them."""

    def __init__(self, subject: LiveSubject, clock: Callable[[], float], pace: Pace, costs: Costs) -> None:
        self.subject: Final = subject
        self.told_at = clock()
        """When it was last said that it is another one now."""
        self._clock = clock
        self._pace = pace
        self._costs = costs
        self._news = asyncio.Event()
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._renderings: dict[str, _Rendering] = {}
        """By the person who may see it."""
        self._expected_s = 0.0
        self.readers = 0

    def tell(self) -> None:
        """It is another one now."""
        self.told_at = self._clock()
        self._news.set()
        self._news = asyncio.Event()

    async def changed(self, since: float) -> float:
        """Wait until it has changed after a time; when it did."""
        while self.told_at <= since:
            await self._news.wait()
        return self.told_at

    async def newest(self, person: str, since: float, make: Callable[[], Awaitable[MadePart]]) -> MadePart:
        """
        The part for a person that was begun at a time or later, with `make` unless somebody has; raises RequestRefused.
        """
        if self.subject.public:
            async with self._making[_ANYBODY]:
                rendering = self._renderings.get(_ANYBODY)
                if rendering is None or rendering.begun < since:
                    rendering = await self._made(make)
                    owners = () if isinstance(rendering.made, RequestRefused) else rendering.made.owners
                    self._renderings[person if person in owners else _ANYBODY] = rendering
                    return _part_of(rendering)
            if isinstance(rendering.made, RequestRefused) or person not in rendering.made.owners:
                return _part_of(rendering)
        async with self._making[person]:
            rendering = self._renderings.get(person)
            if rendering is None or rendering.begun < since:
                self._renderings[person] = rendering = await self._made(make)
        return _part_of(rendering)

    def forget(self, person: str) -> None:
        """Somebody has left."""
        self._renderings.pop(person, None)
        if (lock := self._making.get(person)) is not None and not lock.locked():
            del self._making[person]

    async def _made(self, make: Callable[[], Awaitable[MadePart]]) -> _Rendering:
        expected = self._expected_s
        if waits := self._pace.wait(expected):
            await asyncio.sleep(waits)
        begun, began = self._clock(), self._costs.begin()
        try:
            made: MadePart | RequestRefused = await make()
        except RequestRefused as refusal:
            made = refusal
        finally:
            self._expected_s = self._costs.end(began)
            self._pace.took(expected, self._expected_s)
        return _Rendering(begun, made)


def _part_of(rendering: _Rendering) -> MadePart:
    if isinstance(rendering.made, RequestRefused):
        raise rendering.made
    return rendering.made


class WatchedParts:
    """All that somebody watches."""

    def __init__(self, changes: TellsOfChanges, clock: Callable[[], float]) -> None:
        self._changes = changes
        self._clock = clock
        self._pace = Pace()
        self._costs = Costs()
        self._parts: dict[Hashable, WatchedPart] = {}

    def alone(self) -> WatchedPart:
        """A part of one reader, which is told of nothing."""
        return WatchedPart(LiveSubject(), self._clock, self._pace, self._costs)

    @contextmanager
    def watched(self, key: Hashable, subject: LiveSubject, person: str) -> Generator[WatchedPart]:
        """
        The part that is the same for all who come with the same key, for as long as somebody watches it.
        """
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = WatchedPart(subject, self._clock, self._pace, self._costs)
            self._changes.enter(part)
        part.readers += 1
        try:
            yield part
        finally:
            part.readers -= 1
            part.forget(person)
            if not part.readers:
                del self._parts[key]
                self._changes.leave(part)
