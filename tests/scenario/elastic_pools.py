"""A pool whose machines are processes of this host, which outlive it unless somebody ends them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from kettle.pool.personal_settings import Tables
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.provisioner.providers.processes import kill_tree, marked


@asynccontextmanager
async def pool_of_machines(
    directory: Path, *, settings: Tables, template: Path
) -> AsyncGenerator[ThrowawayPool]:
    """A `throwaway_pool`; what it has left of machines, because its test has failed, is ended after it."""
    home: Path | None = None
    try:
        async with throwaway_pool(directory, settings=settings, template=template) as pool:
            home = pool.home
            yield pool
    finally:
        if home is not None:
            for mark in marked(_below(home)):
                kill_tree(mark, None)


def machines(pool: ThrowawayPool) -> set[str]:
    """What the process table has of machines, by their marks."""
    return set(marked(_below(pool.home)))


def _below(home: Path) -> str:
    return f"{home}/machines/"
