"""Answers that have no end of their own: how many go on at once, and their end with that of the service."""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from aiohttp import web

from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

_AGAIN_S = 30.0


class Streams:
    """Counts them, all together and of each person."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._of: Counter[str] = Counter()
        self._answering: set[asyncio.Task[object]] = set()
        self.count = 0

    def end_with(self, application: web.Application) -> None:
        """
        Have them end when the application does, which would wait a minute for each of them; who reads one comes again.
        """

        async def end(_application: web.Application) -> None:
            for task in self._answering:
                task.cancel("the service ends")

        application.on_shutdown.append(end)

    @contextmanager
    def one_more(self, person: str) -> Generator[None]:
        """As long as it goes on, in the task of its request; raises RequestRefused: they are too many."""
        if self._of.get(person, 0) >= self._most_of_one:
            raise RequestRefused(
                429,
                ProblemCode.TOO_MANY,
                f"you have {self._most_of_one} streams or watched pages open, which is the most of one person: close one, "
                "or follow /v2/events, which has the events of all your jobs in one stream",
                retry_after=_AGAIN_S,
            )
        if self.count >= self._most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} streams are open, which is the most; try again later",
                retry_after=_AGAIN_S,
            )
        task = asyncio.current_task()
        assert task is not None, "a request is answered by a task"
        self.count += 1
        self._of[person] += 1
        self._answering.add(task)
        try:
            yield
        finally:
            self._answering.discard(task)
            self.count -= 1
            self._of[person] -= 1
            if not self._of[person]:
                del self._of[person]
