"""Looking into a job that runs: what condor_tail and condor_ssh_to_job have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kettle.client import Client, CommandRefusedError
from kettle.client.connections.condor_config import PATIENCE_S, CondorConfig, pool_of
from kettle.client.jobs.access import AttemptAccess
from kettle_services.condor.connections.retry import client
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
    retry: bool = False,
    pool: str = "",
    name: str = "",
) -> T:
    """
    Do something with the files or the environment of a job that runs; `retry`: as soon as it does.

    Raises:
        CommandRefusedError: it is not there, does not run, or is somebody else's.
        PoolNotFoundError, PoolUnreachableError: there is no pool, or it did not answer in time.
    """
    meant = pool_of(knobs, pool=pool, name=name)
    patience = knobs.number("TOOL_PATIENCE", PATIENCE_S)

    async def connected() -> T:
        async with client(meant, patience) as one:
            return await work(await _visit(one, job, retry=retry))

    return asyncio.run(connected())


async def _visit(one: Client, job: JobId, *, retry: bool) -> AttemptAccess:
    while True:
        try:
            return await one.visit(job)
        except CommandRefusedError as error:
            if not retry or error.code != RefusalCode.NOT_RUNNING:
                raise
        await asyncio.sleep(_PAUSE_S)
