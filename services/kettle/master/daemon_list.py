"""
Everything that one master keeps running: who is who, who is ready, and the order of the end.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle.master.daemons import Daemon
from kettle.master.domain.order import stop_stages
from kettle.master.keeper import Keeper
from kettle.master.settings import MasterSettings
from kettle.pool.home import Home
from kettle.pool.roster import MasterState, write_state
from kettle.runtime import NotifyListener

_AGAIN_S: Final = 1.0

_log: Final = logging.getLogger(__name__)


class Daemons:
    """
    The keepers of one master, and what is known of them in the home's state file.
    """

    def __init__(self, home: Home, settings: MasterSettings, *, pid: int) -> None:
        self._home = home
        self._settings = settings
        self._keepers: dict[str, Keeper] = {}
        self._again: asyncio.TimerHandle | None = None
        self._state = MasterState(pool=settings.pool, pool_id=home.pool_id(), pid=pid, started=time.time())

    def keep(self, daemon: Daemon, group: asyncio.TaskGroup) -> Keeper:
        """
        Run a daemon from now on.
        """
        keeper = self._keepers[daemon.name] = Keeper(daemon, self._settings, self.write)
        group.create_task(keeper.keep(), name=f"keep {daemon.name}")
        return keeper

    async def listen(self, listener: NotifyListener) -> None:
        """
        Hear what the services say of themselves; the kernel says which of them it was.
        """
        async for said in listener:
            for keeper in self._keepers.values():
                if keeper.daemon.pid == said.pid:
                    keeper.heard(said.state)

    async def ready(self, names: Iterable[str]) -> None:
        """
        Wait until each of these was ready once.
        """
        for name in names:
            await self._keepers[name].ready.wait()

    def all_ready(self, *, nats_url: str, database_url: str) -> None:
        """
        Write down that the pool takes jobs, and where its servers are.
        """
        self._state = msgspec.structs.replace(
            self._state, ready=True, nats_url=nats_url, database_url=database_url
        )
        self.write()

    async def stop(self, servers: Sequence[str]) -> None:
        """
        End all of them, those that others report to after those that report.
        """
        services = [name for name in self._settings.daemon_list if name in self._keepers]
        for stage in [*stop_stages(services), [name for name in servers if name in self._keepers]]:
            async with asyncio.TaskGroup() as group:
                for name in stage:
                    group.create_task(self._keepers[name].stop(), name=f"stop {name}")

    def write(self) -> None:
        """
        Say in the state file how everything stands; later, if that is not possible now.
        """
        if self._again is not None:
            self._again.cancel()
        keepers = sorted(self._keepers.values(), key=self._place)
        states = tuple(keeper.state for keeper in keepers)
        try:
            write_state(self._home, msgspec.structs.replace(self._state, daemons=states))
        except OSError as error:
            # On a full disk.  The services need their keeper more than others need to know how they are.
            _log.warning("the state file cannot be written: %s", error)
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self.write)

    def _place(self, keeper: Keeper) -> int:
        order = self._settings.daemon_list
        return order.index(keeper.name) if keeper.name in order else -1
