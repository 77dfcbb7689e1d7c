"""The way to a pool: its bus, or from within a job, the job's starter."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from kettle.bus.ports import FROM_JOB, Asks, Bus, BusUnavailableError
from kettle.client.connections.pool_file import PoolFile
from kettle.client.errors import PoolUnreachableError
from kettle_wire.identity import user
from kettle_wire.subjects import Subjects


@asynccontextmanager
async def connect_pool(pool: PoolFile, patience: float) -> AsyncGenerator[tuple[Asks, Bus | None]]:
    """
    Whom to ask; and the bus, which there is not in a job: it can ask, and follows nothing.

    `patience` is how many seconds a connection is waited for.

    Raises PoolUnreachableError: there is none.
    """
    if pool.nats_url.startswith(FROM_JOB):
        from kettle.bus.job_connection import FromJob  # in jobs only

        yield FromJob(pool.nats_url), None
        return
    from kettle.bus.nats import NatsBus  # the only import here that costs time

    context = NatsBus.connect(
        pool.nats_url,
        subjects=Subjects(pool.pool),
        identity=user(pool.user),
        credentials=pool.credentials,
        name="client",
        patience=patience,
    )
    try:
        bus = await context.__aenter__()
    except (BusUnavailableError, OSError) as error:
        raise PoolUnreachableError(
            f"the pool's bus at {_shown(pool.nats_url)} cannot be reached: {error}"
        ) from error
    try:
        yield bus, bus
    finally:
        await context.__aexit__(None, None, None)


def _shown(url: str) -> str:
    parts = (server.partition("://") for server in url.split(","))
    return ",".join(f"{scheme}{separator}{rest.rpartition('@')[2]}" for scheme, separator, rest in parts)
