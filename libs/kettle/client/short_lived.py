"""The client of a command that asks little and ends, for programs without an event loop."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from kettle.client.client import Client
from kettle.client.connections.pool_file import PoolFile
from kettle.client.connections.short_transport import ShortTransport

T = TypeVar("T")


class ShortLivedClient:
    """
    `Client` for one thread, over a `ShortTransport`: a question needs no event loop, and whatever does gets one.

    A connection that was needed is closed at the end of each `run`.
    """

    def __init__(self, pool: PoolFile, patience: float, *, quiet: bool = False) -> None:
        """`quiet`: whatever happens to a connection, nothing is logged to standard error."""
        self.pool: Final = pool
        self._transport = ShortTransport(pool, patience, quiet=quiet)
        self._client = Client(self._transport, pool)

    def run(self, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """What the asynchronous client answers."""
        return self._transport.run(work(self._client))
