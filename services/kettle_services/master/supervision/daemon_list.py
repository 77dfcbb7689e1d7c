"""
Everything that one master keeps running: the daemons, which of them are ready, and the order of the shutdown.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from kettle.pool.daemon_states import MasterState, write_state
from kettle.pool.home import Home
from kettle.runtime import NotifyListener
from kettle_services.master.domain.daemon import How
from kettle_services.master.domain.start_order import role_of, stop_stages
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision import orphan_sweep
from kettle_services.master.supervision.processes import Daemon
from kettle_services.master.supervision.supervisor import Supervisor
from kettle_services.master.supervision.switched_off import read_off, write_off

_AGAIN_S: Final = 1.0

_log: Final = logging.getLogger(__name__)


class DaemonList:
    """The keepers of one master, and what is known of them in the home's state file."""

    def __init__(self, home: Home, settings: MasterSettings, *, pid: int, version: str = "") -> None:
        self._home = home
        self._settings = settings
        self._keepers: dict[str, Supervisor] = {}
        self._again: asyncio.TimerHandle | None = None
        self._state = MasterState(
            pool=settings.pool,
            pool_id=home.pool_id(),
            pid=pid,
            started=time.time(),
            name=settings.own_name,
            version=version,
        )
        self.off: frozenset[str] = read_off(home) & set(settings.daemon_list)
        """Those that are not to be started, by the word of an administrator."""
        self.changed: Callable[[], None] = lambda: None
        """Called after each change."""

    @property
    def state(self) -> MasterState:
        """How everything stands."""
        keepers = sorted(self._keepers.values(), key=self._place)
        return msgspec.structs.replace(self._state, daemons=tuple(supervisor.state for supervisor in keepers))

    def supervisor(self, name: str) -> Supervisor:
        """The keeper of one entry of the daemon list, or of a server."""
        return self._keepers[name]

    def use(self, settings: MasterSettings) -> None:
        """Go by other settings from now on."""
        self._settings = settings
        for supervisor in self._keepers.values():
            supervisor.settings = settings

    def switch_off(self, names: Iterable[str]) -> None:
        """Remember that these are not to be started, also by the next master; raises OSError."""
        off = self.off | set(names)
        write_off(self._home, off)
        self.off = off

    def switch_on(self, names: Iterable[str]) -> None:
        """Remember that these are to be started; raises OSError."""
        off = self.off - set(names)
        write_off(self._home, off)
        self.off = off

    def keep(self, daemon: Daemon, group: asyncio.TaskGroup) -> Supervisor:
        """Run a daemon from now on, unless it is switched off."""
        wanted = daemon.name not in self.off
        if not wanted:
            _log.warning(
                "%s is switched off; switch it on with: kettle on --daemon %s", daemon.name, daemon.name
            )
        supervisor = self._keepers[daemon.name] = Supervisor(
            daemon, self._settings, self.write, wanted=wanted
        )
        group.create_task(supervisor.supervise(), name=f"keep {daemon.name}")
        return supervisor

    async def listen(self, listener: NotifyListener) -> None:
        """Receive the messages of the services; the kernel identifies the sender."""
        async for said in listener:
            for supervisor in self._keepers.values():
                if supervisor.daemon.pid == said.pid:
                    supervisor.heard(said.state)

    async def ready(self, names: Iterable[str]) -> None:
        """Wait until each of these was ready once."""
        for name in names:
            await self._keepers[name].ready.wait()

    def all_ready(self, *, nats_url: str, database_url: str) -> None:
        """Write down that the pool takes jobs, and where its servers are."""
        self._state = msgspec.structs.replace(
            self._state, ready=True, nats_url=nats_url, database_url=database_url
        )
        for supervisor in self._keepers.values():
            supervisor.patient = True
        self.write()

    async def stop_services(self, how: How) -> None:
        """End all services permanently, in an order in which each can still report to the next."""
        services = [name for name in self._settings.daemon_list if name in self._keepers]
        for stage in stop_stages(services):
            await self._stop(stage, how)

    async def stop_servers(self, servers: Sequence[str]) -> None:
        """End these servers permanently."""
        await self._stop([name for name in servers if name in self._keepers], "graceful")

    async def _stop(self, names: Sequence[str], how: How) -> None:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(self._keepers[name].stop(how), name=f"stop {name}")

    async def swept(self) -> None:
        """
        Remove what switched off daemons have left behind; jobs are left alone where a startd is to come back to them.
        """
        startds = [name for name in self._settings.daemon_list if role_of(name) == "startd"]
        if startds and all(self._keepers[name].state.status == "off" for name in startds):
            await orphan_sweep.sweep_orphans(self._home)

    def hurry(self, how: How) -> None:
        """Those that are being ended are to end more harshly."""
        for supervisor in self._keepers.values():
            if not supervisor.wanted and supervisor.name in self._settings.daemon_list:
                supervisor.off(how)

    def write(self) -> None:
        """Say in the state file how everything stands; later, if that is not possible now."""
        if self._again is not None:
            self._again.cancel()
        self.changed()
        try:
            write_state(self._home, self.state)
        except OSError as error:
            # On a full disk.  The services need their keeper more than others need to know how they are.
            _log.warning("the state file cannot be written: %s", error)
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self.write)

    def _place(self, supervisor: Supervisor) -> int:
        order = self._settings.daemon_list
        return order.index(supervisor.name) if supervisor.name in order else -1
