"""
Bringing a pool up: servers, schema, credentials, services, side by side wherever one does not need the other.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle import faults
from kettle.accounts.lookup import own_name
from kettle.auth.trust.pool import Kind
from kettle.bus.open_servers import open_servers, warning
from kettle.embedded import EmbeddedNats, EmbeddedPostgres
from kettle.embedded.ports import hold
from kettle.pool import processes
from kettle.pool.home import Home
from kettle.runtime import Lifeline, Notifier, lifeline
from kettle.runtime.settings import IN_USE
from kettle.runtime.settings_in_use import SettingsInUse
from kettle_services.master import account_access, bus_listener, iam_port
from kettle_services.master.access_point_people import AccessPointPeople
from kettle_services.master.bus_members import IAM, PERSON, SENTINEL, BusMembers
from kettle_services.master.database_access import ARCHIVER, DatabaseAccess
from kettle_services.master.domain.start_order import NEEDS_DATABASE, Instance, role_of
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_services.master.supervision.processes import Server, Service, module_of
from kettle_services.master.zygote.client import ServiceZygote
from kettle_services.master.zygote.made import MadeZygote

if TYPE_CHECKING:
    from kettle.client.connections.pool_file import PoolFile

NATS: Final = "nats"
POSTGRES: Final = "postgres"

_CONNECTIONS: Final = frozenset({
    "KETTLE_NATS_URL", "KETTLE_NATS_CREDENTIALS", "KETTLE_NATS_CA", "KETTLE_DATABASE_URL", "KETTLE_HEALTH_PORT",
})  # fmt: skip
_READ_LATE: Final = _CONNECTIONS | {faults.VARIABLE, faults.ONCE}
_NOT_INHERITED: Final = _CONNECTIONS | {
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    lifeline.VARIABLE,
    lifeline.OF_JOBS,
}
"""Variables for the master that are not passed on to its children."""


_log: Final = logging.getLogger(__name__)


class BringUp:
    """One start of a pool."""

    def __init__(
        self,
        settings: MasterSettings,
        home: Home,
        daemons: DaemonList,
        notify_environ: Callable[..., dict[str, str]],
        line: Lifeline,
        zygote: MadeZygote | None = None,
    ) -> None:
        self._settings = settings
        self._home = home
        self._daemons = daemons
        self._notify_environ = notify_environ
        self._lifeline = line
        self._server: EmbeddedNats | None = None
        self._members: BusMembers | None = None
        self._accounts: list[str] = []
        self._people = AccessPointPeople.of(home)
        self._notifier = Notifier.from_environ(os.environ)
        self.nats_url = settings.nats_url
        self._database = DatabaseAccess(settings, None)
        self._with_database = [name for name in settings.daemon_list if role_of(name) in NEEDS_DATABASE]
        self._without_database = [name for name in settings.daemon_list if name not in self._with_database]
        outer = lifeline.inherited(os.environ)
        self._of_jobs = {} if outer is None else {lifeline.OF_JOBS: str(outer)}
        self._fds = [line.read_fd] if outer is None else [line.read_fd, outer]
        forked = filter(self._forkable, [*self._without_database, *self._with_database])
        modules = list(dict.fromkeys(module_of(role_of(name)) for name in forked))
        self.zygote = (
            ServiceZygote(modules, self._environ_of_all(), home.path, fds=self._fds, made=zygote)
            if modules
            else None
        )
        """What forks the services; None: none can be forked."""
        if zygote is not None and self.zygote is None:
            zygote.leave()

    @property
    def database_url(self) -> str:
        """The address of the database for the pool's own account."""
        return self._database.owner_url

    @property
    def servers(self) -> list[str]:
        """The servers that are ours, in no order: they do not need each other."""
        nats = [] if self._settings.nats_url else [NATS]
        postgres = [] if self._settings.database_url or not self._with_database else [POSTGRES]
        return nats + postgres

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Start everything; returns when all of it is ready."""
        self._say(f"starting {' and '.join(self.servers)}" if self.servers else "starting the services")
        SettingsInUse(self._home.in_use / "master.json").keep("master", self._settings)
        nats = self._nats(group)
        postgres = self._postgres(group)
        if self.zygote is not None:
            with contextlib.suppress(OSError):  # it loads the services' modules while the servers start
                await self.zygote.warm()
        if nats is not None:
            await self._daemons.ready([NATS])
            self.nats_url = nats.url
        elif why := warning(await asyncio.to_thread(open_servers, self.nats_url, self._settings.nats_ca)):
            _log.warning("%s", why)
        self._services(self._without_database, group)  # while PostgreSQL starts
        if postgres is not None:
            await self._daemons.ready([POSTGRES])
            self._database = DatabaseAccess(self._settings, postgres)
        if self._with_database:
            self._say("bringing the database up to date")
            await self._database.prepare()
        # The file tells where the iam will be: until it is there, nobody else may be.
        with hold(iam_port.keep_port(self._home.path)) if self._iam else contextlib.nullcontext():
            self._services(self._with_database, group)
            self._write_pool_file()
            for name in self._settings.daemon_list:
                self._say(f"waiting for the {name}")
                await self._daemons.ready([name])

    def _nats(self, group: asyncio.TaskGroup) -> EmbeddedNats | None:
        if self._settings.nats_url:
            return None
        self._accounts = account_access.named(self._settings.accounts)
        self._members = BusMembers(self._home, self._settings, self._accounts, environ_of=self._own_environ)
        listener, port = bus_listener.of(self._settings)
        self._server = EmbeddedNats(
            self._home.path / NATS,
            trust=self._members,
            name=f"kettle-{self._settings.pool}",
            listener=listener,
            port=port,
        )
        self._daemons.keep(Server(NATS, self._server), group)
        return self._server

    async def close(self) -> None:
        """No service is started any more."""
        if self.zygote is not None:
            await self.zygote.close()

    def admit(self, settings: MasterSettings) -> None:
        """
        Let in the accounts and visitors of other settings, and no others; a server that is not ours has its own administrator.

        Raises AccountsError, EmbeddedError and SettingsError.
        """
        if self._people is not None:
            self._tell_people(settings)
            self._tell_accounts(settings)
        elif self._server is not None and self._members is not None:
            bus_listener.of(settings)  # what nobody would accept is not shown
            self._accounts = account_access.named(settings.accounts)
            self._members.admit(settings, self._accounts)
            self._server.trust_again()
            self._tell_accounts(settings)

    def revoke(self, kind: str, keys: Sequence[str]) -> bool:
        """
        Believe nothing more of the keys of a kind of members; whether the NATS server is ours.  Raises EmbeddedError.
        """
        if self._server is None or self._members is None:
            return False
        self._members.revoke(Kind[kind.upper()], keys)
        self._server.trust_again()
        return True

    def shut_out(self, people: Collection[str]) -> bool:
        """
        Let in none of these by the account that they have here; whether the NATS server is ours.  Raises EmbeddedError.
        """
        if self._server is None or self._members is None:
            return False
        if self._members.shut_out(
            people
        ):  # an iam that was restarted says the same: nobody's connection ends for that
            self._server.trust_again()
        return True

    def admit_access_point(self, settings: MasterSettings, name: str, people: str) -> tuple[str, bool]:
        """
        Let in an access point that has joined, without `people` no more; the public key of the account of people, and whether
        anything has changed.  The key is empty if the NATS server is not ours.  Raises EmbeddedError.
        """
        if self._server is None or self._members is None:
            return "", False
        changed = self._members.admit_access_point(settings, name, people)
        if changed:
            self._server.trust_again()
        return self._members.people_account, changed

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

    def _services(self, names: list[str], group: asyncio.TaskGroup) -> None:
        for name in names:
            service = Service(
                name,
                role=role_of(name),
                environ=partial(self._environ, name),
                log=self._home.log / f"{name}.log",
                cwd=self._home.path,
                fds=self._fds,
                zygote=self.zygote if self._forkable(name) else None,
            )
            self._daemons.keep(service, group)

    def _forkable(self, name: str) -> bool:
        """
        Whether all that is its own in the environment of a service is read when it begins, and not when modules load.
        """
        own = self._settings.environment.get(name, {})
        prefix = f"KETTLE_{role_of(name).upper()}_"
        return all(variable in _READ_LATE or variable.startswith(prefix) for variable in own)

    def _environ_of_all(self) -> dict[str, str]:
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in _NOT_INHERITED and not name.startswith("KETTLE_MASTER_")
        }
        variables |= processes.mark(self._home.pool_id())
        variables |= self._lifeline.environ() | self._of_jobs
        variables |= self._notify_environ(watchdog_s=self._settings.not_responding_timeout)
        return variables | {"KETTLE_POOL": self._settings.pool, "KETTLE_HOME": str(self._home.path)}

    def _environ(self, name: str) -> dict[str, str]:
        instance = Instance.parse(name)
        variables = self._environ_of_all() | {
            "KETTLE_NATS_URL": self.nats_url,
            "KETTLE_NATS_CREDENTIALS": self.credentials(name if instance.role == "startd" else instance.role),
            "KETTLE_NATS_CA": self._settings.nats_ca,
            IN_USE: str(self._home.in_use / f"{name}.json"),
        }
        if instance.role == "iam":
            variables["KETTLE_IAM_BUS_MASTER"] = self._settings.own_name
        if instance.role in NEEDS_DATABASE:
            variables["KETTLE_DATABASE_URL"] = self._database.url_of(instance.role)
        if instance.role == "accounting":
            variables["KETTLE_ACCOUNTING_ARCHIVER_URL"] = self._database.url_of(ARCHIVER)
        if instance.role == "accounting" and self._members is not None:
            joined = self._members.access_points()
            variables["KETTLE_ACCOUNTING_ACCESS_POINTS"] = msgspec.json.encode(joined).decode()
        return variables | instance.variables() | self._settings.environment.get(name, {})

    def _own_environ(self, name: str) -> dict[str, str]:
        """What decides about the settings of an entry of the daemon list."""
        own = Instance.parse(name).variables() | self._settings.environment.get(name, {})
        return self._environ_of_all() | own

    def credentials(self, role: str) -> str:
        """
        The path of the credentials with which a role, or the person, connects to the bus; empty: it needs none. Of a startd
        the entry in the daemon list counts, for each has its own.
        """
        own = self._home.credential(role)
        return str(own) if not self._settings.nats_url or own.exists() else self._settings.nats_credentials

    def _write_pool_file(self) -> None:
        """Write the file by which a person's programs find the pool."""
        self._tell_people(self._settings)
        self.tell_way_in(self._settings)

    def tell_way_in(self, settings: MasterSettings) -> None:
        """
        Write how programs of this host find the pool, by the settings of its iam that are in force from now on.
        """
        self._pool_file().save(self._home.path)
        if self._served_here:
            self._tell_accounts(settings)

    @property
    def _served_here(self) -> bool:
        """Whether this master says who the people of the machine are."""
        return self._server is not None or self._people is not None

    def _tell_people(self, settings: MasterSettings) -> None:
        """Have the people of an access point that has joined hold credentials."""
        if self._people is not None:
            self._accounts = account_access.named(settings.accounts)
            self._people.admit([own_name(), *self._accounts])

    def _tell_accounts(self, settings: MasterSettings) -> None:
        """Have the accounts that may use the pool find it, and no others."""
        found = account_access.admitted(self._accounts, self._home.credentials)
        account_access.tell(self._home, Path(settings.accounts_directory), found, self._pool_file())

    def _pool_file(self) -> "PoolFile":
        from kettle.client.connections.pool_file import (
            PoolFile,  # the client's modules load while the services start
        )

        named = {
            each.role: each.name or each.role
            for each in map(Instance.parse, reversed(self._settings.daemon_list))
        }
        pool = PoolFile(
            pool=self._settings.pool,
            schedd=named.get("schedd", "schedd"),
            scaler=named.get("scaler", ""),
            nats_url=self.nats_url,
            credentials=self.credentials(PERSON),
            ca=self._settings.nats_ca,
            user=own_name(),
            master=self._settings.own_name,
            database_url=self.database_url,
            lock=str(self._home.lock),
        )
        sentinel = self._home.credential(SENTINEL)
        if not (self._iam and sentinel.exists()):
            return pool
        from kettle_services.master.way_in import with_way_in  # only where people come by token

        return with_way_in(pool, self._home.path, sentinel, self._own_environ(self._iam))

    @property
    def _iam(self) -> str:
        """The iam of the daemon list; empty: there is none."""
        return next((entry for entry in self._settings.daemon_list if role_of(entry) == IAM), "")

    def _say(self, what: str) -> None:
        self._notifier.send(f"STATUS={what}")
