"""A PostgreSQL server of our own, on a Unix socket that only we can reach, with generated credentials."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import Signals
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

from kettle.embedded.binaries import postgres_bin
from kettle.embedded.errors import EmbeddedError, StartError
from kettle.embedded.postgres_cluster import ENVIRON, SUPERUSER, Cluster
from kettle.embedded.server_account import POSTGRES_UID, reachable_tree, seen_by, server_account
from kettle.embedded.server_process import DirectoryLock, ServerProcess, Stop, end_orphan, log_size, log_tail

if TYPE_CHECKING:
    import asyncpg

START_S: Final = 60.0
"""How long a start may take, recovery after a crash included."""

_STEP_S: Final = 0.005
# Fast shutdown, then immediate: after either nothing of the server is left, after SIGKILL its children are for a moment.
_STOP: Final = Stop(((Signals.SIGINT, 20.0), (Signals.SIGQUIT, 5.0)))

_SETTINGS: Final[Mapping[str, str]] = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "64",
    "max_wal_size": "1GB",
    "wal_level": "replica",
    "jit": "off",
    "log_checkpoints": "off",
    # Shared memory that lies in the data directory is not left behind when the server is killed and never comes back.
    "dynamic_shared_memory_type": "mmap",
}
_THROWAWAY: Final[Mapping[str, str]] = {"fsync": "off", "full_page_writes": "off"}


class EmbeddedPostgres:
    """
    The server of one directory.  At any time at most one process supervises it, and it dies with that process.

    After it has been killed, `start` again brings it back at the same address; `wait` says when that is due.
    """

    def __init__(
        self,
        directory: Path,
        *,
        throwaway: bool = False,
        template: Path | None = None,
        database: str = "kettle",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """
        `throwaway` data is not flushed to the disk and does not survive a crash of the machine.
        `template` is the directory of another, stopped server: a new data directory is copied from it.
        """
        self.directory = directory.absolute()
        self.database = database
        self._throwaway = throwaway
        self._template = template
        self._settings = {**_SETTINGS, **(_THROWAWAY if throwaway else {}), **(settings or {})}
        self._account = server_account(POSTGRES_UID)
        self._cluster = Cluster(self.directory, self._account)
        self._lock: DirectoryLock | None = None
        self._process: ServerProcess | None = None
        self._sockets = self.directory / "socket"

    @property
    def dsn(self) -> str:
        """The URL of the database.  The password is not in it but in the private file that it names."""
        return self.dsn_of(self.database)

    def dsn_of(self, database: str) -> str:
        """The URL of another database of the server."""
        host, passfile = quote(str(self._sockets), safe=""), quote(str(self._cluster.passfile), safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&passfile={passfile}"

    def dsn_as(self, role: str) -> str:
        """
        The URL of the database for a role that may do less than its owner, with the file of its password.
        """
        host, passfile = (
            quote(str(self._sockets), safe=""),
            quote(str(self._cluster.passfile_of(role)), safe=""),
        )
        return f"postgresql://{quote(role, safe='')}@/{quote(self.database, safe='')}?host={host}&passfile={passfile}"

    def has_password(self, role: str) -> bool:
        """Whether a password has been chosen for this role."""
        return self._cluster.passfile_of(role).is_file()

    def password_of(self, role: str) -> str:
        """The password that this role is to have, kept in a private file; made if there is none."""
        return self._cluster.password_of(role)

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        return self._running().pid

    @property
    def running(self) -> bool:
        """Whether the server has been started and has not ended."""
        return self._process is not None and self._process.running

    async def start(self) -> None:
        """
        Bring the server up, making its data directory the first time; returns when it accepts connections.

        Raises:
            EmbeddedError: a program is missing, another process supervises the directory, or it does not come up.
        """
        if self.running:
            return
        if self._lock is None:
            self._lock = DirectoryLock(self.directory)
        try:
            pid_file = self._cluster.data / "postmaster.pid"
            await end_orphan(pid_file, self._cluster.data, _STOP)
            # We hold the lock and nobody runs here: another process that got the old number must not keep us out.
            pid_file.unlink(missing_ok=True)
            binaries = reachable_tree(postgres_bin(), self._account)
            if not self._cluster.exists:
                await self._make_data(binaries)
            self._sockets = self._cluster.socket_directory()
            async with asyncio.timeout(START_S):
                await self._come_up(binaries)
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise self._failed(f"did not accept connections within {START_S:g} s") from error
            raise

    async def wait(self) -> int:
        """
        Wait for the end of the server; its exit status, or minus the number of the signal that killed it.
        """
        return await self._running().wait()

    async def stop(self) -> None:
        """Stop the server, by force if necessary, and release the directory."""
        if self._process is not None:
            await self._process.stop()
            self._process = None
        if self._lock is not None:
            self._cluster.remove_socket_directory()
            self._lock.release()
            self._lock = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _make_data(self, binaries: Path) -> None:
        if self._template is not None:
            await self._cluster.copy(Cluster(self._template, self._account))
        else:
            await self._cluster.initialise(binaries, sync=not self._throwaway)

    async def _come_up(self, binaries: Path) -> None:
        while True:
            said = log_size(self._cluster.log)
            if await self._try(binaries):
                return
            if "shared memory block" not in log_tail(self._cluster.log, said):
                raise self._failed("ended while it was being started")
            await asyncio.sleep(_STEP_S)  # the children of a killed server end within a moment

    async def _try(self, binaries: Path) -> bool:
        """Start the process; false if it ends before it accepts connections."""
        with seen_by(self._account, self._cluster.data, self._sockets) as (paths, fds):
            self._process = await ServerProcess.spawn(
                self._argv(binaries, *paths),
                account=self._account,
                stop=_STOP,
                environ=ENVIRON,
                cwd=self.directory,
                log=self._cluster.log,
                fds=fds,
            )
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while not ended.done():
                if await self._accepts():
                    return True
                await asyncio.wait({ended}, timeout=_STEP_S)
        finally:
            ended.cancel()
        return False

    def _argv(self, binaries: Path, data: Path, sockets: Path) -> Sequence[str]:
        settings = {**self._settings, "unix_socket_directories": str(sockets)}
        pairs = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(binaries / "postgres"), "-D", str(data), *pairs]

    async def _accepts(self) -> bool:
        """Whether a client can connect; makes the database if it is not there yet."""
        import asyncpg  # not everybody who imports this package starts a server

        try:
            connection = await asyncpg.connect(self.dsn, timeout=START_S)
        except asyncpg.InvalidCatalogNameError:
            await self._create_database()
            return True
        except (OSError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError):
            return False
        await connection.close(timeout=START_S)
        return True

    async def _create_database(self) -> None:
        connection = await self.connect("template1")
        try:
            if await connection.fetchval("SELECT true FROM pg_database WHERE datname = 'postgres'"):
                # Copying a database takes longer than all the rest of a start.
                await connection.execute(f"ALTER DATABASE postgres RENAME TO {quoted(self.database)}")
            else:
                await connection.execute(f"CREATE DATABASE {quoted(self.database)} TEMPLATE template0")
        finally:
            await connection.close(timeout=START_S)

    async def connect(self, database: str | None = None) -> "asyncpg.Connection[asyncpg.Record]":
        """A connection to a database of the server, for the caller to close."""
        import asyncpg

        return await asyncpg.connect(self.dsn_of(database or self.database), timeout=START_S)

    def _running(self) -> ServerProcess:
        if self._process is None:
            raise EmbeddedError(f"PostgreSQL in {self.directory} has not been started.")
        return self._process

    def _failed(self, why: str) -> StartError:
        return StartError("PostgreSQL", why, self._cluster.log, log_tail(self._cluster.log))


def quoted(identifier: str) -> str:
    """An identifier as it is written in SQL."""
    return '"' + identifier.replace('"', '""') + '"'
