"""How many answers go on at once that have no end of their own."""

from collections.abc import Generator
from contextlib import contextmanager

from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

_AGAIN_S = 30.0


class Streams:
    """Counts them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.count = 0

    @contextmanager
    def one_more(self) -> Generator[None]:
        """As long as it goes on; raises RequestRefused: they are too many."""
        if self.count >= self._most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} streams are open, which is the most; try again later",
                retry_after=_AGAIN_S,
            )
        self.count += 1
        try:
            yield
        finally:
            self.count -= 1
