"""The transport over a connection that lasts: to the pool's bus, or within a job to the job's starter."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kettle.bus.ports import FROM_JOB, Asks, Bus, BusUnavailableError, NotAcceptedError, Rep, Req
from kettle.client.connections.pool_file import FILE, PoolFile
from kettle.client.connections.retry import ask_with_retry
from kettle.client.connections.transport import PATIENCE_S, TRY_S, Waiting
from kettle.client.errors import CommandRefusedError, PoolNotFoundError, PoolUnreachableError
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle.bus.nats import NatsBus

_AGAIN: Final = Backoff(first=0.1, longest=1.0)


class ConnectedTransport:
    """A `Transport`; any number of tasks may ask through it at once."""

    def __init__(self, asks: Asks, bus: Bus | None = None, *, patience: float = PATIENCE_S) -> None:
        """`bus`: where there is one, beside who can be asked."""
        self.waiting: Waiting | None = None
        self._asks = asks
        self._bus = bus
        self._patience = patience

    @property
    def patience(self) -> float:
        """See `Transport.patience`."""
        return self._patience

    async def call(
        self,
        endpoint: Endpoint[Req, Rep],
        name: str,
        request: Req,
        *,
        patience: float | None = None,
        deadline: float = TRY_S,
    ) -> Rep:
        """See `Transport.call`."""
        return await ask_with_retry(
            self._asks,
            endpoint,
            name,
            request,
            patience=self._patience if patience is None else patience,
            deadline=deadline,
            waiting=self.waiting,
        )

    async def connection(self) -> Bus | None:
        """See `Transport.connection`."""
        return self._bus


@asynccontextmanager
async def connect_pool(pool: PoolFile, patience: float) -> AsyncGenerator[ConnectedTransport]:
    """
    Connect to a pool; a job can only ask through its starter, and follows nothing.

    `patience` is how many seconds a connection is waited for, and then an answer.

    Raises:
        PoolUnreachableError: there is none.
        PoolNotFoundError: the pool has ended, and only its file is left.
    """
    if pool.nats_url.startswith(FROM_JOB):
        from kettle.bus.job_connection import FromJob  # in jobs only

        yield ConnectedTransport(FromJob(pool.nats_url), patience=patience)
        return
    if pool.left_over and not _listens(pool.nats_url):
        raise PoolNotFoundError(
            f"no pool is up: its master has ended without removing {Path(pool.lock).parent / FILE}; start it with: kettle up"
        )
    async with AsyncExitStack() as stack:
        bus = await _connected(stack, pool, Deadline(patience))
        yield ConnectedTransport(bus, bus, patience=patience)


async def _connected(stack: AsyncExitStack, pool: PoolFile, whole: Deadline) -> "NatsBus":
    """The bus; one that takes no token because its iam is away is asked again."""
    from kettle.bus.nats import NatsBus  # the only import here that costs time
    from kettle.client.connections.credentials import refusal_of, token_of

    async def connect() -> NatsBus:
        context = NatsBus.connect(
            pool.nats_url,
            subjects=Subjects(pool.pool),
            identity=user(pool.user),
            credentials=pool.credentials,
            ca=pool.ca,
            name="client",
            patience=max(0.1, whole.left()),
            token=partial(token_of, pool) if pool.token else None,
        )
        try:
            return await stack.enter_async_context(context)
        except NotAcceptedError as error:
            why = await asyncio.to_thread(refusal_of, pool, error)
            if isinstance(why, CommandRefusedError) or not pool.token:
                raise why from error
            raise

    try:
        return await retry(connect, _AGAIN, retryable=_may_come_back, deadline=whole)
    except (BusUnavailableError, OSError) as error:
        raise PoolUnreachableError(
            f"the pool's bus at {_shown(pool.nats_url)} cannot be reached: {error}"
        ) from error


def _may_come_back(error: Exception) -> bool:
    return isinstance(error, NotAcceptedError)


def _listens(url: str) -> bool:
    """Whether anybody takes a connection at the address of the bus."""
    for server in url.split(","):
        address = urlsplit(server.strip() if "://" in server else f"nats://{server.strip()}")
        try:
            socket.create_connection((address.hostname or "", address.port or 4222), timeout=1.0).close()
        except OSError:
            continue
        return True
    return False


def _shown(url: str) -> str:
    parts = (server.partition("://") for server in url.split(","))
    return ",".join(f"{scheme}{separator}{rest.rpartition('@')[2]}" for scheme, separator, rest in parts)
