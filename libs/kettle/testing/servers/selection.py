"""
The servers of a test run: the one place that decides which, by the variable KETTLE_TEST_SERVERS.

    embedded     (unset) each test's own, from the wheels of the `embedded` extra
    external     those at KETTLE_NATS_URL and KETTLE_DATABASE_URL
    cluster      three NATS servers with one JetStream on this machine; PostgreSQL is embedded
    containers   NATS and PostgreSQL from images, under Docker

In every lane but the first the servers outlive a test. So each test gets a database and a pool's name of its own on
them, and what it made is removed at its end.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from kettle.embedded import EmbeddedPostgres
from kettle.testing.servers.docker import containers
from kettle.testing.servers.embedded import EVERYTHING, Servers, fresh_database, server_directory, servers
from kettle.testing.servers.locations import Addresses, Place, fresh_pool
from kettle.testing.servers.nats_cluster import NODES, NatsCluster

LANES: Final = ("embedded", "external", "cluster", "containers")
VARIABLE: Final = "KETTLE_TEST_SERVERS"
_EXTERNAL: Final = (
    "KETTLE_NATS_URL", "KETTLE_NATS_CREDENTIALS", "KETTLE_NATS_REPLICAS", "KETTLE_DATABASE_URL"
)  # fmt: skip


class _Run:
    """What `opened` opened."""

    addresses: Addresses | None = None


def lane(environ: Mapping[str, str] = os.environ) -> str:
    """
    The lane that the environment chooses.

    Raises:
        ValueError: there is none of that name.
    """
    chosen = environ.get(VARIABLE) or LANES[0]
    if chosen not in LANES:
        raise ValueError(f"{VARIABLE}={chosen}: the tests run on one of {', '.join(LANES)}.")
    return chosen


def servers_are_ours() -> bool:
    """Whether each test has servers of its own, which it may kill."""
    return lane() == LANES[0]


@contextmanager
def opened() -> Generator[None]:
    """
    The servers of the run are there while the context lasts; for the main thread, once per run.

    Raises:
        NotHereError: this machine cannot have them; the message says why.
    """
    # The runner stays: what starts a process in an event loop must also see its end in that loop.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        stack = AsyncExitStack()
        _Run.addresses = runner.run(_open(lane(), stack))
        try:
            yield
        finally:
            _Run.addresses = None
            runner.run(stack.aclose())


async def _open(chosen: str, stack: AsyncExitStack) -> Addresses | None:
    match chosen:
        case "external":
            return _external(stack)
        case "cluster":
            return await stack.enter_async_context(_cluster())
        case "containers":
            return await stack.enter_async_context(containers(os.environ))
        case _:
            return None


def _external(stack: AsyncExitStack) -> Addresses:
    """
    What the environment says, taken out of it meanwhile: what a test starts has a database and a pool of its own.
    """
    missing = [name for name in ("KETTLE_NATS_URL", "KETTLE_DATABASE_URL") if not os.environ.get(name)]
    if missing:
        raise ValueError(f"{VARIABLE}=external: set {' and '.join(missing)} to where your servers are.")
    said = {name: os.environ.pop(name) for name in _EXTERNAL if name in os.environ}
    stack.callback(os.environ.update, said)
    return Addresses(
        nats_url=said["KETTLE_NATS_URL"],
        nats_credentials=said.get("KETTLE_NATS_CREDENTIALS", ""),
        nats_replicas=int(said.get("KETTLE_NATS_REPLICAS", "1")),
        database_url=said["KETTLE_DATABASE_URL"],
    )


@asynccontextmanager
async def _cluster() -> AsyncGenerator[Addresses]:
    with server_directory() as directory:
        async with (
            EmbeddedPostgres(directory / "postgres", throwaway=True) as postgres,
            NatsCluster(directory / "nats", permissions=EVERYTHING) as nats,
        ):
            yield Addresses(
                nats_url=nats.url,
                nats_credentials=str(nats.credentials("test")),
                nats_replicas=NODES,
                database_url=postgres.dsn,
            )


@asynccontextmanager
async def place(directory: Path, *, template: Path | None = None) -> AsyncGenerator[Place]:
    """
    Servers for one test, with an empty database and a pool's name that nobody else has.

    Servers of the test's own are below `directory`; `template`, see `postgres_template`, makes them start faster.
    """
    if _Run.addresses is None:
        async with servers(directory, template=template) as own:
            yield _own(own)
        return
    async with place_on(Place("", _Run.addresses)) as made:
        yield made


@asynccontextmanager
async def place_on(shared: Place) -> AsyncGenerator[Place]:
    """
    An empty database and a pool's name that nobody else has, on servers that other tests use before and after.
    """
    async with fresh_database(shared.addresses.database_url) as url, fresh_pool(shared.addresses) as pool:
        yield Place(pool, msgspec.structs.replace(shared.addresses, database_url=url))


def _own(own: Servers) -> Place:
    addresses = Addresses(
        nats_url=own.nats.url,
        nats_credentials=str(own.nats.credentials("test")),
        nats_replicas=1,
        database_url=own.postgres.dsn,
    )
    return Place("test", addresses, own)


@asynccontextmanager
async def database_server(directory: Path) -> AsyncGenerator[str]:
    """The URL of a database on a server on which `fresh_database` may make others."""
    if _Run.addresses is not None:
        yield _Run.addresses.database_url
        return
    async with EmbeddedPostgres(directory / "postgres", throwaway=True) as server:
        yield server.dsn


@asynccontextmanager
async def pool_settings() -> AsyncGenerator[Mapping[str, str | int]]:
    """
    What a pool that is brought up for one test is told of its servers; nothing where its master starts them.
    """
    if _Run.addresses is None:
        yield {}
        return
    async with fresh_database(_Run.addresses.database_url) as url, fresh_pool(_Run.addresses) as pool:
        yield {"pool": pool, **msgspec.structs.asdict(_Run.addresses), "database_url": url}
