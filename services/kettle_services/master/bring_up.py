"""
Bringing a pool up: servers, schema, credentials, services, side by side wherever one does not need the other.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.embedded import EmbeddedNats, EmbeddedPostgres, Permissions
from kettle.pool import processes
from kettle.pool.home import Home
from kettle.runtime import Lifeline, Notifier
from kettle_services.master import account_access
from kettle_services.master.bus_users import PERSON, bus_users, login_name
from kettle_services.master.domain.start_order import NEEDS_DATABASE, Instance, role_of
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_services.master.supervision.processes import Server, Service

if TYPE_CHECKING:
    from kettle.client.connections.pool_file import PoolFile

NATS: Final = "nats"
POSTGRES: Final = "postgres"

_DATABASE_S: Final = 30.0

_NOT_INHERITED: Final = frozenset({
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "KETTLE_LIFELINE_FD",
    "KETTLE_NATS_URL", "KETTLE_NATS_CREDENTIALS", "KETTLE_DATABASE_URL", "KETTLE_HEALTH_PORT",
})  # fmt: skip
"""Variables for the master that are not passed on to its children."""


class BringUp:
    """One start of a pool."""

    def __init__(
        self,
        settings: MasterSettings,
        home: Home,
        daemons: DaemonList,
        notify_environ: Callable[..., dict[str, str]],
        lifeline: Lifeline,
    ) -> None:
        self._settings = settings
        self._home = home
        self._daemons = daemons
        self._notify_environ = notify_environ
        self._lifeline = lifeline
        self._server: EmbeddedNats | None = None
        self._accounts: list[str] = []
        self._notifier = Notifier.from_environ(os.environ)
        self.nats_url = settings.nats_url
        self.database_url = settings.database_url
        self._needs_database = any(role_of(name) in NEEDS_DATABASE for name in settings.daemon_list)

    @property
    def servers(self) -> list[str]:
        """The servers that are ours, in no order: they do not need each other."""
        nats = [] if self._settings.nats_url else [NATS]
        postgres = [] if self._settings.database_url or not self._needs_database else [POSTGRES]
        return nats + postgres

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Start everything; returns when all of it is ready."""
        self._say(f"starting {' and '.join(self.servers)}" if self.servers else "starting the services")
        names = self._settings.daemon_list
        with_database = [name for name in names if role_of(name) in NEEDS_DATABASE]
        nats = self._nats(group)
        postgres = self._postgres(group)
        if nats is not None:
            await self._daemons.ready([NATS])
            self.nats_url = nats.url
        # An interpreter takes longer to load its modules than NATS to start, so these load while PostgreSQL starts.
        self._services([name for name in names if role_of(name) not in NEEDS_DATABASE], group)
        if postgres is not None:
            await self._daemons.ready([POSTGRES])
            self.database_url = postgres.dsn
        await self._migrate()
        self._services(with_database, group)
        self._write_pool_file()
        for name in names:
            self._say(f"waiting for the {name}")
            await self._daemons.ready([name])

    def _nats(self, group: asyncio.TaskGroup) -> EmbeddedNats | None:
        if self._settings.nats_url:
            return None
        self._server = EmbeddedNats(
            self._home.path / NATS,
            credentials=self._home.credentials,
            permissions=self._allowed(self._settings),
            name=f"kettle-{self._settings.pool}",
        )
        self._daemons.keep(Server(NATS, self._server), group)
        return self._server

    def admit(self, settings: MasterSettings) -> None:
        """
        Let in the accounts and visitors of other settings, and no others; a server that is not ours has its own administrator.
        """
        if self._server is not None:
            self._server.allow(self._allowed(settings))
            self._tell_accounts(settings)

    def _allowed(self, settings: MasterSettings) -> Mapping[str, Permissions]:
        self._accounts = account_access.named(settings.accounts)
        return bus_users(
            settings.pool, settings.daemon_list, settings.flock_from, settings.view_from, self._accounts
        )

    def _postgres(self, group: asyncio.TaskGroup) -> EmbeddedPostgres | None:
        if POSTGRES not in self.servers:
            return None
        template = self._settings.postgres_template
        server = EmbeddedPostgres(
            self._home.path / POSTGRES,
            throwaway=self._settings.throwaway,
            template=Path(template) if template else None,
        )
        self._daemons.keep(Server(POSTGRES, server), group)
        return server

    async def _migrate(self) -> None:
        if self._settings.migrate and self._needs_database:
            from kettle.storage.database import Database
            from kettle.storage.migration import migrate

            self._say("bringing the database's schema up to date")
            async with Database.connect(self.database_url, connections=1) as database:
                await database.run(migrate, patience=_DATABASE_S)

    def _services(self, names: list[str], group: asyncio.TaskGroup) -> None:
        for name in names:
            service = Service(
                name,
                role=role_of(name),
                environ=partial(self._environ, name),
                log=self._home.log / f"{name}.log",
                cwd=self._home.path,
                fds=[self._lifeline.read_fd],
            )
            self._daemons.keep(service, group)

    def _environ(self, name: str) -> dict[str, str]:
        settings, instance = self._settings, Instance.parse(name)
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in _NOT_INHERITED and not name.startswith("KETTLE_MASTER_")
        }
        variables |= processes.mark(self._home.pool_id())
        variables |= self._lifeline.environ()
        variables |= self._notify_environ(watchdog_s=settings.not_responding_timeout)
        variables |= {
            "KETTLE_POOL": settings.pool,
            "KETTLE_HOME": str(self._home.path),
            "KETTLE_NATS_URL": self.nats_url,
            "KETTLE_NATS_CREDENTIALS": self.credentials(instance.role),
        }
        if instance.role in NEEDS_DATABASE:
            variables["KETTLE_DATABASE_URL"] = self.database_url
        return variables | instance.variables() | settings.environment.get(name, {})

    def credentials(self, role: str) -> str:
        """
        The path of the seed with which a role, or the person, connects to the bus; empty: it needs none.
        """
        own = self._home.credential(role)
        return str(own) if not self._settings.nats_url or own.exists() else self._settings.nats_credentials

    def _write_pool_file(self) -> None:
        """Write the file by which a person's programs find the pool."""
        self._pool_file().save(self._home.path)
        if self._server is not None:
            self._tell_accounts(self._settings)

    def _tell_accounts(self, settings: MasterSettings) -> None:
        """Have the accounts that may use the pool find it, and no others."""
        found = account_access.admitted(self._accounts, self._home.credentials)
        account_access.tell(self._home, Path(settings.accounts_directory), found, self._pool_file())

    def _pool_file(self) -> "PoolFile":
        from kettle.client.connections.pool_file import (
            PoolFile,  # the client's modules load while the services start
        )

        return PoolFile(
            pool=self._settings.pool,
            nats_url=self.nats_url,
            credentials=self.credentials(PERSON),
            user=login_name(),
            master=self._settings.own_name,
            database_url=self.database_url,
        )

    def _say(self, what: str) -> None:
        self._notifier.send(f"STATUS={what}")
