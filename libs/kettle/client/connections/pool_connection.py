"""The transport over a connection that lasts: to the pool's bus, or within a job to the job's starter."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kettle.bus.ports import FROM_JOB, Asks, Bus, BusUnavailableError, NotAcceptedError, Rep, Req
from kettle.client.connections.pool_file import FILE, PoolFile
from kettle.client.connections.retry import ask_with_retry
from kettle.client.connections.transport import PATIENCE_S, TRY_S, Waiting
from kettle.client.errors import ClientError, PoolNotFoundError, PoolUnreachableError
from kettle.retry.backoff import Backoff
from kettle.retry.deadline import Deadline
from kettle.retry.loop import retry
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import bearer, user
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle.bus.nats import NatsBus

GREETING_S: Final = 15.0
"""
So long a bus that takes connections may need to greet, whatever the patience is: that is for answers, and a machine that is busy for
some seconds has a bus.
"""
_AGAIN: Final = Backoff(first=0.05, longest=0.3)
"""While an iam is away the server itself takes two seconds to say no."""


class ConnectedTransport:
    """A `Transport`; any number of tasks may ask through it at once."""

    def __init__(
        self,
        asks: Asks,
        bus: Bus | None = None,
        *,
        patience: float = PATIENCE_S,
        why_unreachable: Callable[[], ClientError | None] = lambda: None,
        place: str = "",
        shown: Callable[[], str] | None = None,
    ) -> None:
        """
        `bus`: where there is one, beside who can be asked; `why_unreachable` asks elsewhere why nobody answers, and may block;
        `place`: where the token is that is shown, as `ask_with_retry` tells it; `shown` gives it.
        """
        self._place = place
        self._shown = shown
        self._why_unreachable = why_unreachable
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
        absent: float | None = None,
    ) -> Rep:
        """See `Transport.call`."""
        try:
            return await ask_with_retry(
                self._asks,
                endpoint,
                name,
                request,
                patience=self._patience if patience is None else patience,
                deadline=deadline,
                absent=absent,
                waiting=self.waiting,
                token=self._place,
            )
        except PoolUnreachableError as error:
            if (why := await asyncio.to_thread(self._why_unreachable)) is not None:
                raise why from error
            raise

    async def token(self) -> str:
        """See `Transport.token`."""
        return await asyncio.to_thread(self._shown) if self._shown is not None else ""

    async def connection(self) -> Bus | None:
        """See `Transport.connection`."""
        return self._bus


@asynccontextmanager
async def connect_pool(
    pool: PoolFile, patience: float, token: Callable[[], str] | None = None
) -> AsyncGenerator[ConnectedTransport]:
    """
    Connect to a pool; a job can only ask through its starter, and follows nothing.

    `patience` is how many seconds a connection is waited for, and then an answer; see `GREETING_S`.
    `token`: what is shown for each connection instead of what the pool's file names.

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
        shown = _Shown(pool, token) if token is not None or pool.token else None
        bus = await _connected(stack, pool, shown, patience)
        why = shown.why_refused if shown is not None else _nobody_knows
        place, token_now = (shown.place, shown.token) if shown is not None else ("", None)
        yield ConnectedTransport(
            bus, bus, patience=patience, why_unreachable=why, place=place, shown=token_now
        )


class _Shown:
    """The token that is shown for each connection; only where there is one its modules are loaded."""

    def __init__(self, pool: PoolFile, token: Callable[[], str] | None = None) -> None:
        """
        `token`: what says it, if not the place that the pool's file names. Raises ClientError: there is none to begin with.
        """
        from kettle.client.connections import credentials

        self._pool = pool
        self._credentials = credentials
        self._now = token or partial(credentials.token_of, pool)
        self._token = self._now()
        self.place: Final = credentials.shown(pool.token)
        """How a person is told where it is."""

    def token(self) -> str:
        """The token; the former one again, if nothing better can be had at the moment."""
        with suppress(ClientError):
            self._token = self._now()
        return self._token

    def why_refused(self) -> ClientError | None:
        """Why the pool does not take it; None: it does, or nobody answers."""
        return self._credentials.why_refused(self._pool, self._now)


def _nobody_knows() -> None:
    """The pool is asked in no other way."""


async def _connected(
    stack: AsyncExitStack, pool: PoolFile, shown: _Shown | None, patience: float
) -> "NatsBus":
    """The bus; one that takes no token because its iam is away is asked again."""
    from kettle.bus.nats import NatsBus  # the only import here that costs time

    there = patience < GREETING_S and await asyncio.to_thread(_listens, pool.nats_url)
    greeting = Deadline(GREETING_S if there else patience)
    whole = Deadline(patience)  # the pool's time, not that of our own start

    async def connect() -> NatsBus:
        context = NatsBus.connect(
            pool.nats_url,
            subjects=Subjects(pool.pool),
            identity=bearer(pool.user) if shown is not None or pool.by_token else user(pool.user),
            credentials=pool.credentials,
            ca=pool.ca,
            name="client",
            patience=max(0.1, whole.left(), greeting.left()),
            token=shown.token if shown is not None else None,
        )
        try:
            return await stack.enter_async_context(context)
        except NotAcceptedError as error:
            if shown is None:
                raise PoolUnreachableError(f"the pool's bus does not let you in: {error}") from error
            if (why := await asyncio.to_thread(shown.why_refused)) is not None:
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
