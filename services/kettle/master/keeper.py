"""
Keeping one service or server running: start, watch, wait, start again.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kettle.embedded import EmbeddedError
from kettle.master.daemons import Daemon
from kettle.master.domain.restart import Again, Leave, after_end, silent
from kettle.master.settings import MasterSettings
from kettle.pool.roster import DaemonState
from kettle.runtime.notify import STANDBY

_log: Final = logging.getLogger(__name__)

_DID_NOT_START: Final = 1
_LOOK_S: Final = 1.0
_KILLED_S: Final = 5.0


class StartGivenUpError(Exception):
    """
    A service did not become ready while the pool was being started, and trying on is of no use.
    """

    def __init__(self, name: str, why: str, last_words: str) -> None:
        said = f"  It said:\n{last_words}" if last_words else ""
        super().__init__(f"{name} {why} while the pool was being started.{said}")


class Keeper:
    """
    One daemon and the record of its life.  `keep` runs until `stop`, or until the daemon is left alone.
    """

    def __init__(self, daemon: Daemon, settings: MasterSettings, changed: Callable[[], None]) -> None:
        """
        `changed` is called after each change of `state`.
        """
        self.daemon = daemon
        self.state = DaemonState(name=daemon.name, status="waiting")
        self.ready = asyncio.Event()
        """Set when the daemon was ready for the first time."""
        self._settings = settings
        self._changed = changed
        self._stopping = asyncio.Event()
        self._serves = False
        self._sign = 0.0
        self._began = 0.0
        self._why = ""

    @property
    def name(self) -> str:
        """
        The daemon's name.
        """
        return self.daemon.name

    async def keep(self) -> None:
        """
        Run the daemon, again and again.

        Raises:
            StartGivenUpError: it failed too often before it was ever ready.
        """
        failures = 0
        try:
            while not self._stopping.is_set():
                status = await self._once()
                if self._stopping.is_set():
                    break
                verdict = after_end(
                    self._settings.backoff,
                    failures=failures,
                    ran_s=time.monotonic() - self._began,
                    status=status,
                )
                self._note_end(status, verdict)
                self._give_up(status, verdict, failures + 1)
                if isinstance(verdict, Leave):
                    return
                failures = verdict.failures
                await self._pause(verdict.delay)
        finally:
            await self._end_now()

    async def stop(self) -> None:
        """
        End the daemon and do not start it again.
        """
        self._stopping.set()
        if self.daemon.pid:
            self._set(status="stopping")
            await self.daemon.stop(self._settings.shutdown_graceful_timeout)
        self._set(status="stopped", pid=0, since=time.time())

    def heard(self, said: Mapping[str, str]) -> None:
        """
        The daemon said something of itself.
        """
        self._sign = time.monotonic()
        if "READY" in said:
            self._is_ready(standby=said.get("STATUS") == STANDBY)

    async def _once(self) -> int:
        """
        One life of the daemon; how it ended.
        """
        self._began = self._sign = time.monotonic()
        self._serves = False
        self._set(status="starting", pid=0, since=time.time(), starts=self.state.starts + 1)
        try:
            await self.daemon.start()
        except (OSError, EmbeddedError) as error:
            self._why = f": {error}"
            _log.error("%s does not start: %s", self.name, error)
            return _DID_NOT_START
        if self._stopping.is_set():  # asked while it was being started
            await self.daemon.stop(self._settings.shutdown_graceful_timeout)
        self._set(pid=self.daemon.pid)
        if not self.daemon.notifies:
            self._is_ready()
        return await self._watch()

    async def _watch(self) -> int:
        period = min(_LOOK_S, self._settings.not_responding_timeout / 4)
        ended = asyncio.ensure_future(self.daemon.wait())
        looked = time.monotonic()
        try:
            while not (await asyncio.wait({ended}, timeout=period))[0]:
                now = time.monotonic()
                if (self.daemon.notifies and self._hangs(now, looked, period)) or self._ails():
                    self.daemon.kill()
                looked = now
            return ended.result()
        finally:
            ended.cancel()

    def _ails(self) -> bool:
        if why := self.daemon.ailment():
            _log.error("%s does not do its work, starting it again: %s", self.name, why)
        return bool(why)

    def _hangs(self, now: float, looked: float, period: float) -> bool:
        if now - looked > 3 * period:
            self._sign = now  # we were stopped ourselves; what it said meanwhile is still to be read
        timeout = self._settings.not_responding_timeout if self._serves else self._settings.start_timeout
        if not silent(now=now, last_sign=self._sign, timeout=timeout, looked=looked, period=period):
            return False
        _log.error("%s hangs: no sign of life for %.1f s, killing it", self.name, now - self._sign)
        return True

    def _is_ready(self, *, standby: bool = False) -> None:
        self._serves = True
        self._set(status="standby" if standby else "running")
        self.ready.set()

    def _note_end(self, status: int, verdict: Again | Leave) -> None:
        how = f"status {status}" if status >= 0 else f"signal {-status}"
        match verdict:
            case Again(delay=delay):
                _log.warning("%s ended with %s, starting it again in %.2f s", self.name, how, delay)
                self._set(status="waiting", pid=0, since=time.time(), last_exit=how)
            case Leave(reason=reason):
                _log.warning("%s ended with %s: %s", self.name, how, reason)
                self._set(status="left", pid=0, since=time.time(), last_exit=how)

    def _give_up(self, status: int, verdict: Again | Leave, failures: int) -> None:
        if self.ready.is_set():
            return
        if isinstance(verdict, Leave):
            raise StartGivenUpError(
                self.name, f"{verdict.reason} (status {status})", self.daemon.last_words()
            )
        if failures >= self._settings.start_attempts:
            raise StartGivenUpError(self.name, f"ended {failures} times{self._why}", self.daemon.last_words())

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _end_now(self) -> None:
        # Reached with a living process only if the master itself failed or is cancelled.
        if self.daemon.pid:
            self.daemon.kill()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_KILLED_S):
                    await self.daemon.wait()

    def _set(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)
        self._changed()
