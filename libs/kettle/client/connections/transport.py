"""
What a client asks through, and the requests that it sends.

There are two transports: `kettle.client.connections.pool_connection` has the one over a connection that lasts, and
`kettle.client.connections.short_transport` the one of a command that asks once and ends.  This module loads neither.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from kettle.bus.ports import Rep, Req
from kettle.client.connections.pool_file import PoolFile
from kettle_wire.endpoint import Endpoint

if TYPE_CHECKING:
    from kettle.bus.ports import Bus

PATIENCE_S: Final = 30.0
"""How long a request is repeated before we give up."""
TRY_S: Final = 5.0
"""After how long an answer is believed to be lost."""
SIDE_QUESTION_S: Final = 3.0
"""Patience for an answer that we can do without."""

Waiting = Callable[[str], None]
"""Told, once, that an answer takes longer than one notices, and why."""


class Transport(Protocol):
    """
    A way to the services of a pool that is patient: it repeats a request until there is an answer, or its patience is over.

    That is right for commands too, because each has an id, and a service that gets it twice carries it out once.
    """

    waiting: Waiting | None
    """Told when an answer takes longer than one notices, and why: for a person at a terminal."""

    @property
    def patience(self) -> float:
        """How many seconds a request is repeated."""
        ...

    async def token(self) -> str:
        """
        The token that is shown to the pool, as it is now; empty: it knows us by an account. Raises ClientError.
        """
        ...

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        name: str,
        request: Req,
        *,
        patience: float | None = None,
        deadline: float = TRY_S,
        absent: float | None = None,
    ) -> Rep:
        """
        The answer of the service `name`; `patience` of this request alone, after how long an answer is believed to be lost, and for how
        long nobody may listen, where such a service need not be there.

        Raises:
            CommandRefusedError: the service said no.
            PoolUnreachableError: it did not say anything in time.
        """
        ...

    async def connection(self) -> "Bus | None":
        """
        Have a connection that lasts, with an event loop under it; the bus, which there is not in a job.

        Raises PoolUnreachableError.
        """
        ...


class Requests:
    """The requests that are sent to the services of one pool."""

    def __init__(self, transport: Transport, pool: PoolFile) -> None:
        self.transport: Final = transport
        self.pool: Final = pool

    async def ask(
        self,
        endpoint: Endpoint[Req, Rep],
        request: Req,
        *,
        name: str = "",
        patience: float | None = None,
        deadline: float = TRY_S,
        absent: float | None = None,
    ) -> Rep:
        """
        What a service answers: the one of the endpoint's role that the pool's file names, or `name`.

        Raises like `Transport.call`.
        """
        whom = name or self.pool.name_of(endpoint.role)
        return await self.transport.call(
            endpoint, whom, request, patience=patience, deadline=deadline, absent=absent
        )


def new_id() -> str:
    """The id of a command, by which a repeat is known."""
    return os.urandom(16).hex()
