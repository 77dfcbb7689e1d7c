"""
One master between its start and its end: tune the host, start, watch the disk and the installed version, stop.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from kettle.pool.home import Home, make_run
from kettle.runtime import NotifyListener, Runtime, make_lifeline
from kettle.runtime.daemon_ad import daemon_facts
from kettle.runtime.deeds import Outbox
from kettle.runtime.settings_in_use import SettingsInUse
from kettle.runtime.settings_problems import Problem
from kettle_services.master import configuration_check
from kettle_services.master.bring_up import BringUp
from kettle_services.master.bus_connection import BusConnection
from kettle_services.master.bus_members import MASTER
from kettle_services.master.commands import MasterCommands
from kettle_services.master.domain.ad import Host, master_ad
from kettle_services.master.domain.daemon import How
from kettle_services.master.domain.disk_space import shortage
from kettle_services.master.domain.new_binary import Installed, Rollover, look, pause
from kettle_services.master.host_metrics import measure_host
from kettle_services.master.installed_version import installed, trouble
from kettle_services.master.kernel_tuning import tune
from kettle_services.master.self_restart import SelfRestart
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_services.master.zygote.made import MadeZygote
from kettle_wire.ads import Ad
from kettle_wire.subjects import Subjects

_GOOD_BYE_S: Final = 3.0
_TUNING_LOG: Final = "kernel-tuning.log"

_log: Final = logging.getLogger(__name__)


class MasterError(Exception):
    """The master cannot go on; the message is the sentence with which it ends."""


async def live(
    rt: Runtime, settings: MasterSettings, home: Home, succession: SelfRestart, zygote: MadeZygote | None
) -> None:
    """Tune, start, watch, until asked to stop; then end everything."""
    tuning = ""
    if settings.linux_kernel_tuning_script:
        tuning = await tune(
            settings.linux_kernel_tuning_script,
            timeout_s=settings.kernel_tuning_timeout,
            log=home.log / _TUNING_LOG,
        )
    with (
        NotifyListener(make_run(home) / "notify") as listener,
        contextlib.closing(make_lifeline()) as lifeline,
    ):
        async with asyncio.TaskGroup() as group:
            host = _Host(rt, settings, home, succession, group, tuning)
            bring_up = BringUp(settings, home, host.daemons, listener.environ, lifeline, zygote)
            try:
                await host.run(bring_up, listener)
            finally:
                await bring_up.close()
    check_disk(home, settings)


def check_disk(home: Home, settings: MasterSettings) -> None:
    """Raise the error that a full disk is."""
    free = os.statvfs(home.path)
    why = shortage(
        home.path, free_bytes=free.f_bavail * free.f_frsize, minimum_bytes=settings.minimum_disk_mib << 20
    )
    if why:
        raise MasterError(why)


class _Host:
    def __init__(
        self,
        rt: Runtime,
        settings: MasterSettings,
        home: Home,
        succession: SelfRestart,
        group: asyncio.TaskGroup,
        tuning: str,
    ) -> None:
        self._rt = rt
        self._home = home
        self._succession = succession
        self._group = group
        self._tuning = tuning
        self._up = asyncio.Event()
        self._bring_up: BringUp | None = None
        self._facts: Ad = {}
        self._restarts: How | None = None
        """How it ends to take its own place; a stop of another kind means that it is to end."""
        self._rollover = Rollover(running=installed() or Installed("unknown", ""))
        version = self._rollover.running.version
        self.daemons = DaemonList(home, settings, pid=os.getpid(), version=version)
        self._master_commands = MasterCommands(
            self.daemons,
            settings,
            load=partial(MasterSettings.load, "master"),
            succeed=self._succeed,
            tasks=group,
            admit=self._admit,
            revoke=self._revoke_members,
            shut_out=self._shut_out,
            admit_access_point=self._admit_access_point,
            check=self._problems,
            keep=self._keep,
        )
        self._line = BusConnection(
            name=settings.own_name,
            version=version,
            ad=self._ad,
            interval=lambda: self._master_commands.settings.update_interval,
            served=self._master_commands.served(),
            authorization=lambda: self._master_commands.settings.authorization,
            deeds=Outbox(self._master_commands.settings.home_path / "deeds", "master"),
        )
        self.daemons.changed = self._line.changed
        measure_host(rt.telemetry, self.daemons, home.path)

    async def run(self, bring_up: BringUp, listener: NotifyListener) -> None:
        """Everything that a master does at once, until it is asked to stop."""
        self._bring_up = bring_up
        self._rt.on_reconfigure(self._reconfigure)
        line = self._group.create_task(self._hold_line(bring_up), name="line")
        beside = [
            self._group.create_task(self.daemons.listen(listener), name="listen"),
            self._group.create_task(self._watch_disk(), name="disk"),
            self._group.create_task(self._watch_version(), name="version"),
            self._group.create_task(self._start(bring_up), name="start"),
        ]
        await self._rt.stopping.wait()
        self._master_commands.close()
        await self._stop()
        for task in (line, *beside):
            task.cancel()
        while not line.done():  # it says good-bye over a server that is still there
            await asyncio.wait([line], timeout=_GOOD_BYE_S)
            line.cancel()  # the client of the bus may have forgotten the first one
        await self.daemons.stop_servers(bring_up.servers)

    async def _problems(self) -> list[Problem]:
        """What is wrong with the configuration."""
        return await configuration_check.problems(self._bring_up.zygote if self._bring_up else None)

    async def _start(self, bring_up: BringUp) -> None:
        await bring_up.run(self._group)
        self.daemons.all_ready(nats_url=bring_up.nats_url, database_url=bring_up.database_url)
        self._rt.ready()
        self._up.set()

    async def _hold_line(self, bring_up: BringUp) -> None:
        await self._up.wait()
        settings = self._master_commands.settings
        self._facts = daemon_facts("master", settings.own_name, bring_up.nats_url)
        await self._line.hold(
            bring_up.nats_url,
            subjects=Subjects(settings.pool),
            credentials=bring_up.credentials(MASTER),
            ca=settings.nats_ca,
            replicas=settings.nats_replicas,
        )

    async def _stop(self) -> None:
        stopping = asyncio.ensure_future(self.daemons.stop_services(self._rt.how))
        hurried = asyncio.ensure_future(self._rt.hurried.wait())
        try:
            await asyncio.wait({stopping, hurried}, return_when=asyncio.FIRST_COMPLETED)
            if not stopping.done():
                self._succession.wanted &= self._restarts == self._rt.how
                self.daemons.hurry(self._rt.how)
            await stopping
        finally:
            stopping.cancel()
            hurried.cancel()

    def _reconfigure(self) -> None:
        if self._up.is_set():  # before that, every service reads its settings anyway
            self._master_commands.reconfigure()

    def _revoke_members(self, kind: str, keys: Sequence[str]) -> bool:
        return self._bring_up is not None and self._bring_up.revoke(kind, keys)

    def _shut_out(self, people: Sequence[str]) -> bool:
        return self._bring_up is not None and self._bring_up.shut_out(people)

    def _admit_access_point(self, settings: MasterSettings, name: str, people: str) -> tuple[str, bool]:
        return self._bring_up.admit_access_point(settings, name, people) if self._bring_up else ("", False)

    def _admit(self, settings: MasterSettings) -> None:
        if self._bring_up is not None:
            self._bring_up.admit(settings)

    def _keep(self, settings: MasterSettings) -> None:
        SettingsInUse(self._home.in_use / "master.json").keep("master", settings)
        if self._bring_up is not None:
            self._bring_up.tell_way_in(settings)

    def _succeed(self, how: How) -> None:
        if not self._rt.draining or not self._rt.hurried.is_set():
            self._succession.wanted = True
            self._restarts = how
            self._rt.stop(how)

    def _ad(self) -> Ad:
        state = self.daemons.state
        host = Host(
            name=self._master_commands.settings.own_name,
            machine=socket.gethostname(),
            started=state.started,
            pid=state.pid,
            uid=os.getuid(),
            version=state.version,
            installed=self._rollover.shown.version,
            waiting=self._rollover.waiting is not None,
            tuning=self._tuning,
            reconfigured=self._master_commands.reconfigured,
            facts=self._facts,
        )
        return master_ad(host, state.daemons, now=time.time())

    async def _watch_disk(self) -> None:
        """
        Stop the pool, cleanly, when its disk is full; the master then ends with the sentence that says so.
        """
        while True:
            await asyncio.sleep(self._master_commands.settings.disk_interval)
            try:
                check_disk(self._home, self._master_commands.settings)
            except MasterError as error:
                _log.critical("%s", error)
                self._rt.stop()
                return

    async def _watch_version(self) -> None:
        """Use another version when it has been installed; returns only when that ends this process."""
        await self._up.wait()
        refused: Installed | None = None
        while True:
            settings, now = self._master_commands.settings, time.monotonic()
            interval, delay = settings.check_new_exec_interval, settings.new_binary_delay
            await asyncio.sleep(pause(self._rollover, now=now, interval=interval, delay=delay))
            found = await asyncio.to_thread(installed)
            before = self._rollover
            self._rollover, due = look(before, found, now=time.monotonic(), delay=delay)
            if self._rollover.waiting != before.waiting:
                self._line.changed()
            new = self._rollover.waiting
            if due and new is not None and new != refused:
                refused = new
                await self._roll_over(new)

    async def _roll_over(self, new: Installed) -> None:
        running, how = self._rollover.running.version, self._master_commands.settings.new_binary_restart
        if how == "NEVER":
            _log.warning("Kettle %s is installed, %s runs; use it with: kettle restart", new.version, running)
        elif why := await trouble():
            _log.error("Kettle %s is installed and cannot be used, %s goes on: %s", new.version, running, why)
        else:
            _log.warning("Kettle %s is installed: restarting from %s, %s", new.version, running, how.lower())
            self._succeed("peaceful" if how == "PEACEFUL" else "graceful")
