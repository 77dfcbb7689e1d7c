"""
A small pool of connections to PostgreSQL, which outlives restarts of the server.

What is retried is what a server that restarts, fails over or has no room says; every other error is raised.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Self, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlsplit

import asyncpg

from kettle.eventsourcing.log import LogUnavailableError
from kettle.pki.explanations import failed as explained
from kettle.pki.explanations import is_distrusted
from kettle.retry.loop import retry

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

T = TypeVar("T")
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

ACQUIRE_S: Final = 10.0
STATEMENT_S: Final = 60.0

ERRORS: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What a statement may raise; `is_away` says which of these errors are temporary."""

SESSION: Final = {
    "application_name": "kettle",
    "jit": "off",
    # A new plan for every set of arguments costs an append as much as its execution.
    "plan_cache_mode": "force_generic_plan",
    "synchronous_commit": "on",
}

_log = logging.getLogger(__name__)

# Classes of SQLSTATE: connection, transaction rollback, insufficient resources, operator intervention, system error;
# and a write that met a standby in the middle of a fail-over.
_AWAY_CLASSES: Final = ("08", "40", "53", "57", "58")
_AWAY_STATES: Final = ("25006",)


def is_away(error: BaseException) -> bool:
    """Whether the same statement may succeed later, on this server or on its successor."""
    match error:
        case asyncpg.PostgresError():
            state = str(getattr(error, "sqlstate", "") or "")
            return state[:2] in _AWAY_CLASSES or state in _AWAY_STATES
        case asyncpg.InterfaceError():
            return not isinstance(error, ValueError)  # ValueError: our arguments, not the server
        case _:
            return isinstance(error, (OSError, asyncpg.InternalClientError))


async def _keep_session(_connection: object) -> None:
    """
    We leave nothing behind in a session, so nothing has to be reset, which saves a round trip per statement.
    """


class Database:
    """Connections are made when they are needed and thrown away when they break."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self._pool = pool
        self._ca = ""
        """Path of the authority by which the server is trusted; it is named where the server is not."""
        self._closed = False
        self._met = False
        """Whether the server has answered once."""

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        dsn: str,
        *,
        connections: int = 4,
        patience: float | None = None,
        session: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Self, None]:
        """
        Wait for the server up to `patience` seconds (None: without limit), then raise LogUnavailableError.

        `session`: settings of the server for these connections, besides ours or in their place.

        One that shows a certificate which the URL does not trust (`sslmode=verify-full`) is not waited for: it is another
        server, and LogUnavailableError is raised at once.
        """
        pool = asyncpg.create_pool(
            dsn,
            min_size=0,
            max_size=connections,
            timeout=ACQUIRE_S,
            command_timeout=STATEMENT_S,
            reset=_keep_session,
            server_settings={**SESSION, **(session or {})},
        )
        database = cls(await pool)
        database._ca = "".join(parse_qs(urlsplit(dsn).query).get("sslrootcert", []))
        try:
            await database.run(lambda connection: connection.execute("SELECT 1"), patience=patience)
            yield database
        finally:
            database._closed = True
            pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        """A connection for a while; errors are the caller's."""
        async with self._pool.acquire(timeout=ACQUIRE_S) as connection:
            yield connection

    async def run(self, attempt: Callable[[Connection], Awaitable[T]], *, patience: float | None = None) -> T:
        """Call `attempt` until it does not meet a server that is away. It must be harmless to repeat."""

        async def once() -> T:
            async with self.connection() as connection:
                self._met = True
                return await attempt(connection)

        def passes(error: Exception) -> bool:
            return not self._closed and is_away(error) and (self._met or not is_distrusted(error))

        said = ""

        def failed(error: Exception, pause: float) -> None:
            nonlocal said
            del pause
            said = f": {error}" if str(error) else ""
            _log.warning("PostgreSQL is away: %s", error)

        try:
            async with asyncio.timeout(patience):
                return await retry(once, retryable=passes, failed=failed)
        except TimeoutError as error:
            raise LogUnavailableError(f"PostgreSQL did not answer within {patience} seconds{said}") from error
        except OSError as error:
            if not is_distrusted(error):
                raise
            raise LogUnavailableError(
                str(explained(error, "PostgreSQL", self._ca, setting="sslrootcert in database_url"))
            ) from error
