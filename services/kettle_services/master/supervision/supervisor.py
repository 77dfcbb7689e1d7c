"""Keeping one service or server as it should be: the hands of `kettle_services.master.domain.daemon`."""

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kettle.embedded import EmbeddedError
from kettle.pool.daemon_states import DaemonState, Status
from kettle.runtime import SETTINGS_SAID
from kettle.runtime.systemd_notify import STANDBY
from kettle_services.master.domain import daemon as child
from kettle_services.master.domain.daemon import ALIVE, How, Phase, Step, SupervisedDaemon
from kettle_services.master.domain.start_order import manner
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.processes import Daemon

_log: Final = logging.getLogger(__name__)

_DID_NOT_START: Final = 1
_LOOK_S: Final = 5.0
"""Between looks for the signs that a daemon gives."""
_SERVER_LOOK_S: Final = 1.0
"""Between looks for what ails a server, which gives none."""
_KILLED_S: Final = 5.0

_STATUS: Final[Mapping[Phase, Status]] = {
    "off": "off",
    "waiting": "waiting",
    "launching": "starting",
    "starting": "starting",
    "running": "running",
    "standby": "standby",
    "stopping": "stopping",
    "hung": "stopping",
    "left": "left",
}
"""What others call the phases."""


class StartGivenUpError(Exception):
    """A service did not become ready while the pool was being started, and trying on is of no use."""

    def __init__(self, name: str, why: str, last_words: str) -> None:
        said = f"  It said:\n{last_words}" if last_words else ""
        super().__init__(f"{name} {why} while the pool was being started.{said}")


class Supervisor:
    """One daemon and the record of its life.  `keep` runs until `stop`."""

    def __init__(
        self, daemon: Daemon, settings: MasterSettings, changed: Callable[[], None], *, wanted: bool = True
    ) -> None:
        """`changed` is called after each change of `state`; one that is not `wanted` is not started."""
        self.daemon = daemon
        self.settings = settings
        self.ready = asyncio.Event()
        """Set when the daemon was ready for the first time, or is switched off."""
        self.said = asyncio.Event()
        """Set when it has said what came of the last `renew`."""
        self.patient = False
        """Whether failures are no reason to give up: the pool has been up."""
        self._child = (
            SupervisedDaemon(due=time.monotonic()) if wanted else SupervisedDaemon(phase="off", wanted=False)
        )
        self.state = DaemonState(name=daemon.name, status=self._status())
        self._changed = changed
        self._wake = asyncio.Event()
        self._settled = asyncio.Event()
        self._over = False
        self._ended: asyncio.Future[int] | None = None
        self._looked = time.monotonic()
        self._why = ""
        if not wanted:
            self.ready.set()

    @property
    def name(self) -> str:
        """The daemon's name."""
        return self.daemon.name

    @property
    def wanted(self) -> bool:
        """Whether it is to run."""
        return self._child.wanted

    async def supervise(self) -> None:
        """
        Run the daemon, and start it again whenever it ends.

        Raises:
            StartGivenUpError: it failed too often before it was ever ready.
        """
        try:
            while not (self._over and self._child.phase == "off"):
                await self._turn()
        finally:
            await self._end_now()

    async def stop(self, how: How = "graceful") -> None:
        """End the daemon permanently; returns when it has ended."""
        self._over = True
        self.off(how)
        await self.is_off()

    async def is_off(self) -> None:
        """Wait until it has ended, or is wanted again."""
        while not (self._child.wanted or self._child.phase == "off"):
            self._settled.clear()
            await self._settled.wait()

    def off(self, how: How = "graceful") -> None:
        """Stop the daemon, and do not start it again."""
        how = manner(self.name, how)
        self._take(child.off(self._child, how, now=time.monotonic(), rules=self.settings.rules))

    def on(self) -> None:
        """Make sure that the daemon runs."""
        self._take(child.on(self._child, now=time.monotonic()))

    def restart(self, how: How = "graceful") -> None:
        """Stop the daemon and start it again."""
        how = manner(self.name, how)
        self._take(child.restart(self._child, how, now=time.monotonic(), rules=self.settings.rules))

    async def restarted(self, how: How = "graceful") -> None:
        """
        Stop the daemon and start it again; returns when it does its work again, or stands by for it, or is to run no more.
        """
        starts = self.state.starts
        self.restart(how)
        while not (
            self._child.phase in {"off", "left"}
            or (self.state.starts > starts and self._child.phase in {"running", "standby"})
        ):
            self._settled.clear()
            await self._settled.wait()

    def renew(self) -> bool:
        """
        Make the daemon read its settings again; returns whether it runs.  Its answer is then in `state.settings`.
        """
        changed = child.renew(self._child)
        self.said.clear()
        self._take(changed)
        return bool(changed[1])

    def heard(self, said: Mapping[str, str]) -> None:
        """The daemon sent a message about itself."""
        if SETTINGS_SAID in said:
            self._note(settings=said[SETTINGS_SAID])
            self.said.set()
        ready, standby = "READY" in said, said.get("STATUS") == STANDBY
        before = self._child
        self._child = child.heard(before, now=time.monotonic(), ready=ready, standby=standby)
        if ready:
            self._is_ready()

    # -- turns -------------------------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        """Wait for the next thing to happen to the daemon, and do what follows."""
        look = _LOOK_S if self.daemon.notifies else _SERVER_LOOK_S
        period = min(look, self.settings.not_responding_timeout / 4)
        wake = asyncio.ensure_future(self._wake.wait())
        try:
            waited: set[asyncio.Future[Any]] = {wake} if self._ended is None else {wake, self._ended}
            await asyncio.wait(waited, timeout=self._patience(period), return_when=asyncio.FIRST_COMPLETED)
        finally:
            wake.cancel()
        self._wake.clear()
        if self._ended is not None and self._ended.done():
            status, self._ended = self._ended.result(), None
            await self._finish(status)
        now = time.monotonic()
        self._do_what_ails()
        if not self.daemon.notifies:  # a server: it gives no signs, so none is missed
            self._child = msgspec.structs.replace(self._child, sign=now)
        change = child.tick(
            self._child, now=now, looked=self._looked, period=period, rules=self.settings.rules
        )
        self._looked = now
        if self._take(change, awake=False):
            await self._start()

    def _patience(self, period: float) -> float | None:
        if self._child.phase in {"off", "left"}:
            return None
        until = self._child.due - time.monotonic()
        if self._child.phase == "waiting":
            return max(0.0, until)
        if self._child.phase in {"stopping", "hung"}:
            return None if until == math.inf else max(0.0, until)
        return period

    def _do_what_ails(self) -> None:
        if self._child.phase in {"starting", "running", "standby"} and (why := self.daemon.restart_reason()):
            _log.error("%s does not do its work, starting it again: %s", self.name, why)
            self.daemon.ask("kill")

    async def _start(self) -> None:
        self._note(pid=0, since=time.time(), starts=self.state.starts + 1)
        try:
            await self.daemon.start()
        except (OSError, EmbeddedError) as error:
            self._why = f": {error}"
            _log.error("%s does not start: %s", self.name, error)
            await self._finish(_DID_NOT_START)
            return
        self._ended = asyncio.ensure_future(self.daemon.wait())
        self._note(pid=self.daemon.pid)
        now = time.monotonic()
        self._take(child.launched(self._child, now=now, rules=self.settings.rules))
        if not self.daemon.notifies:
            self._child = child.heard(self._child, now=now, ready=True, standby=False)
            self._is_ready()

    async def _finish(self, status: int) -> None:
        """The process is over, or never was."""
        before = self._child
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        if status == child.EXIT_RENEWED:
            how = f"{how} (to use changed settings)"
        if before.phase == "hung":
            how, hangs = f"{how} (hung)", self.state.hangs + 1
            self._note(hangs=hangs)
            if (kept := await asyncio.to_thread(self.daemon.keep_stacks)) is not None:
                _log.error("where %s hung is in %s", self.name, kept)
        now = time.monotonic()
        # What was asked of it while the stacks were being written counts, too.
        before = self._child
        self._child = after = child.ended(before, status, now=now, rules=self.settings.rules)
        if after.phase == "left":
            _log.warning("%s ended with %s: %s", self.name, how, after.left)
        elif after.failures:
            _log.warning("%s ended with %s, starting it again in %.2f s", self.name, how, after.due - now)
        self._note(pid=0, since=time.time(), last_exit=how)
        self._settled.set()
        self._give_up(status)

    def _give_up(self, status: int) -> None:
        if self.patient or self.ready.is_set():
            return
        if self._child.phase == "left":
            raise StartGivenUpError(
                self.name, f"{self._child.left} (status {status})", self.daemon.last_words()
            )
        if self._child.failures >= self.settings.start_attempts:
            times = self._child.failures
            raise StartGivenUpError(self.name, f"ended {times} times{self._why}", self.daemon.last_words())

    async def _end_now(self) -> None:
        # Reached with a living process only if the master itself failed or is cancelled.
        if self._ended is not None:
            self._ended.cancel()
        if self.daemon.pid:
            self.daemon.ask("kill")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_KILLED_S):
                    await self.daemon.wait()

    # -- what follows ------------------------------------------------------------------------------------------------

    def _take(self, change: child.Change, *, awake: bool = True) -> bool:
        """Carry out what was decided; whether it is to be started, which the keeper does in its own turn."""
        self._child, steps = change
        for step in steps:
            if step != "start":
                self._tell(step)
        self._note()
        self._settled.set()
        if awake:
            self._wake.set()
        return "start" in steps

    def _tell(self, step: Step) -> None:
        if step == "abort":
            silence = time.monotonic() - self._child.sign
            _log.error("%s hangs: no sign of life for %.1f s, ending it", self.name, silence)
        elif step == "kill":
            _log.error("%s has not ended when it was asked to, killing it", self.name)
        if step != "start" and self._child.phase in ALIVE:
            self.daemon.ask(step)

    def _is_ready(self) -> None:
        if self._child.phase in {"running", "standby"}:
            self._note()
            self._settled.set()
            self.ready.set()

    def _status(self) -> Status:
        return _STATUS[self._child.phase]

    def _note(self, **changes: object) -> None:
        before, status = self.state, self._status()
        self.state = msgspec.structs.replace(before, status=status, **changes)
        if self.state != before:
            self._changed()
