"""Looking into a job that runs: what condor_tail and condor_ssh_to_job have in common."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kettle.client import Client, CommandRefusedError
from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import NotBegunError
from kettle.client.jobs.access import AttemptAccess
from kettle.retry.backoff import steady
from kettle.retry.loop import retry
from kettle_services.condor.connections.pool_client import client_of
from kettle_wire.codes import RefusalCode
from kettle_wire.jobs import JobId

T = TypeVar("T")

_PAUSE_S: Final = 1.0
"""Seconds between two queries whether a job runs, because a waiting program gets no notification."""


def visiting(
    knobs: CondorConfig,
    job: JobId,
    work: Callable[[AttemptAccess], Awaitable[T]],
    *,
    patient: bool = False,
    pool: str = "",
    name: str = "",
) -> T:
    """
    Do something with the files or the environment of a job that runs; `patient`: as soon as it does.

    Raises:
        CommandRefusedError: it is not there, does not run, or is somebody else's.
        PoolNotFoundError, PoolUnreachableError: there is no pool, or it did not answer in time.
    """

    def waits(error: Exception) -> bool:
        return patient and isinstance(error, NotBegunError)

    async def visited(client: Client) -> T:
        async def attempt() -> T:
            return await work(await _visit(client, job, patient=patient))

        return await retry(attempt, steady(_PAUSE_S, spread=0.0), retryable=waits)

    return client_of(knobs, pool=pool, name=name).run(visited)


async def _visit(one: Client, job: JobId, *, patient: bool) -> AttemptAccess:
    def waits(error: Exception) -> bool:
        return patient and isinstance(error, CommandRefusedError) and error.code == RefusalCode.NOT_RUNNING

    return await retry(lambda: one.visit(job), steady(_PAUSE_S, spread=0.0), retryable=waits)
