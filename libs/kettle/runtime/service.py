"""
The runner: what every service process does around its own work.

A service is an async function `serve(rt, settings)`.  The process lives as long as `serve` or one of its loops; a
failure in any of them stops all of them, is logged once, and is exit status 1.  The first SIGTERM or SIGINT drains:
`rt.stopping` is set, and `serve` has the drain time to finish what it has begun; the second one ends it at once.
SIGQUIT drains too, in a hurry; SIGUSR1 lets the jobs that run come to their own end first, however long that takes.

SIGHUP reads the settings again.  A service whose settings have changed ends without draining, with a status that asks
for a new start: what it does goes on as after a crash, so no service has to know how to change under way.  Settings that
cannot be used change nothing: neither now nor at a new start, which goes on with those that were last in use.

SIGABRT, which a master sends to a service that hangs, writes the stacks of all threads to standard error.
"""

import asyncio
import contextlib
import faulthandler
import gc
import importlib
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from kettle import VERSION
from kettle.eventsourcing.log import FencedError
from kettle.runtime import health, lifeline, logs, telemetry
from kettle.runtime.exporting import telemetry_of
from kettle.runtime.settings import Settings
from kettle.runtime.settings_in_use import SettingsInUse
from kettle.runtime.settings_problems import SettingsError
from kettle.runtime.systemd_notify import Notifier
from kettle_wire.telemetry.process_metrics import READY

if TYPE_CHECKING:
    import ssl

    from aiohttp import web

    from kettle.runtime.telemetry_settings import TelemetrySettings

EXIT_CLEAN: Final = 0
EXIT_FAILED: Final = 1
EXIT_SETTINGS: Final = 78
"""The settings are wrong: starting again without changing them is of no use."""

EXIT_RENEWED: Final = 75
"""The settings have changed: start it again, at once."""

SETTINGS_SAID: Final = "X_KETTLE_SETTINGS"
"""The variable of a notification that says what SIGHUP came to (see `kettle.runtime.systemd_notify`)."""

DRAIN_S: Final = 10.0

How = Literal["graceful", "fast", "peaceful"]
_STOPS: Final[Mapping[signal.Signals, How]] = {
    signal.SIGTERM: "graceful",
    signal.SIGINT: "graceful",
    signal.SIGQUIT: "fast",
    signal.SIGUSR1: "peaceful",
}
_COLLECTED_AFTER: Final = 5_000
"""
New objects before those that refer to each other are looked for: Python's 700 are those of a few messages, and most of them are still
in use then.
"""
_STDERR: Final = 2

_log: Final = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Settings)
Serve = Callable[["Runtime", S], Coroutine[Any, Any, None]]


class Runtime:
    """What a service has for the time it runs."""

    def __init__(
        self,
        role: str,
        *,
        drain: float = DRAIN_S,
        notifier: Notifier | None = None,
        works: Callable[[], None] = lambda: None,
    ) -> None:
        """`works` is called when the service does its work, or is ready to take it over."""
        self.role = role
        self.stopping = asyncio.Event()
        """Set when the process has been asked to stop: begin nothing new, finish what has begun, return."""
        self.how: How = "graceful"
        """How it has been asked to stop."""
        self.hurried = asyncio.Event()
        """Set when it is no longer to wait for jobs to end by themselves."""
        self.renewed = False
        """Whether it ends to be started again with other settings."""
        self.telemetry = telemetry.Telemetry()
        self._drain = drain
        self._notifier = notifier or Notifier()
        self._works = works
        self._checks: dict[str, health.Check] = {}
        self._stack = AsyncExitStack()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._at_once = asyncio.Event()
        self._reconfigure: Callable[[], None] | None = None
        self._rereads: list[Callable[[], None]] = []
        self._ready = False
        self._standby = False
        self._group: asyncio.TaskGroup

    @property
    def draining(self) -> bool:
        """Whether the process has been asked to stop."""
        return self.stopping.is_set()

    async def enter(self, resource: AbstractAsyncContextManager[R]) -> R:
        """Open a resource that is closed, in reverse order, when all of the service's loops have ended."""
        return await self._stack.enter_async_context(resource)

    def loop(self, work: Coroutine[Any, Any, object], *, name: str) -> None:
        """
        Run something beside `serve`.  A failure stops the process; when `serve` has drained, it is cancelled.
        """
        task = self._group.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def ready(self) -> None:
        """Notify the parent process that the service does its work from now on."""
        self._ready = True
        self._works()
        self._notifier.ready()
        _log.info("ready", extra={"pid": os.getpid()})

    def standby(self) -> None:
        """Notify the parent process that this process is well, and waits until it is needed."""
        self._standby = True
        self._works()
        self._notifier.standby()

    def add_health(self, application: "web.Application") -> None:
        """Have a web server of the service's own answer `/healthz` and `/readyz`, too."""
        health.add_health(application, self._checks)

    def readiness(self, name: str, check: health.Check) -> None:
        """Make `/readyz` ask this too."""
        self._checks[name] = check

    def stop(self, how: How = "graceful") -> None:
        """
        Ask the process to stop: the first time it drains, the second time it ends at once.

        One that was asked to stop peacefully drains at the second time.
        """
        waits = self.how == "peaceful" and not self.hurried.is_set()
        if not self.stopping.is_set():
            self.how = how
            if how != "peaceful":
                self.hurried.set()
            self._notifier.stopping()
            self.stopping.set()
        elif waits and how != "peaceful":
            self.how = how
            self.hurried.set()
        elif not waits:
            self._at_once.set()

    def on_reconfigure(self, reconfigure: Callable[[], None]) -> None:
        """At SIGHUP call this, instead of ending for a new start if the settings have changed."""
        self._reconfigure = reconfigure

    def on_reread(self, reread: Callable[[], None]) -> None:
        """
        At SIGHUP call this, too: what it reads is in files that the settings only name. It raises SettingsError if they
        cannot be used.
        """
        self._rereads.append(reread)

    def reconfigure(self, load: Callable[[], Settings], settings: Settings) -> None:
        """
        The settings may have changed: `load` reads them again, `settings` are those in use.

        Settings that cannot be used change nothing.
        """
        if self._reconfigure is not None:
            self._reconfigure()
            return
        try:
            for reread in self._rereads:
                reread()
            changed = load() != settings
        except (SettingsError, ValueError) as error:
            _log.error("goes on with the settings as they were: %s", error)
            self._notifier.send(_refusal(str(error)))
            return
        if not changed:
            self._notifier.send(f"{SETTINGS_SAID}=unchanged")
        elif self._notifier.supervised:
            _log.info("its settings have changed: ends, to be started again with the new ones")
            self._notifier.send(f"{SETTINGS_SAID}=changed")
            self.renewed = True
            self.abort()
        else:
            _log.warning("its settings have changed, and nobody would start it again: restart it to use them")

    def abort(self) -> None:
        """
        End without draining, as after a crash: the next process goes on with what is there, running jobs too.
        """
        self._at_once.set()

    async def host(self, settings: S, serve: Serve[S]) -> None:
        """
        Run the service to its end in the current event loop; signals and exit status are the caller's business.

        Raises:
            BaseExceptionGroup: what failed.
        """
        self.telemetry = telemetry_of(self.role, settings)
        async with asyncio.TaskGroup() as signs_of_life:
            watchdog = signs_of_life.create_task(self._notifier.keep_alive(), name="watchdog")
            try:
                async with self._stack:
                    await self._answer_health(settings)
                    async with asyncio.TaskGroup() as self._group:
                        await self._live(serve(self, settings))
            finally:
                await self.telemetry.shutdown()
                watchdog.cancel()

    async def _answer_health(self, settings: Settings) -> None:
        self.telemetry.observe(READY, self._serves)
        if settings.telemetry.metrics or settings.health_port:
            from kettle.runtime import metrics_port  # a web server, which most pools do without

            self._checks["ready"] = self._serves_or_stands_by
            assert self.telemetry.measurements is not None, "the settings want them"
            await self.enter(
                metrics_port.serving(
                    self.role,
                    settings,
                    self._checks,
                    self.telemetry.measurements,
                    encryption=self._encryption(settings.telemetry),
                    version=VERSION,
                )
            )

    def _serves(self) -> bool:
        return self._ready and not self.draining

    def _serves_or_stands_by(self) -> bool:
        """
        A standby is as ready as it can be: else nobody could replace both of two by new ones, one after the other.
        """
        return (self._ready or self._standby) and not self.draining

    def _encryption(self, wanted: "TelemetrySettings") -> "ssl.SSLContext | None":
        if not wanted.certificate:
            return None
        from kettle.runtime.tls_listener import tls_context

        return tls_context(self, certificate=wanted.certificate, key=wanted.certificate_key)

    async def _live(self, work: Coroutine[Any, Any, None]) -> None:
        self.loop(work, name="serve")
        (serving,) = self._tasks
        stopping = asyncio.ensure_future(self.stopping.wait())
        at_once = asyncio.ensure_future(self._at_once.wait())
        hurried = asyncio.ensure_future(self.hurried.wait())
        try:
            while self._tasks and not self.draining and not at_once.done():
                await asyncio.wait({*self._tasks, stopping, at_once}, return_when=asyncio.FIRST_COMPLETED)
            if self.draining:
                await asyncio.wait({serving, at_once, hurried}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({serving, at_once}, timeout=self._drain, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done() and not at_once.done():
                _log.warning("not drained in time", extra={"drain_s": self._drain})
        finally:
            for task in (stopping, at_once, hurried, *self._tasks):
                task.cancel()


def run(
    role: str,
    settings_type: type[S],
    serve: Serve[S],
    *,
    uvloop: bool = True,
    drain: float = DRAIN_S,
    environ: Mapping[str, str] | None = None,
) -> int:
    """
    Run the service `role`: everything in the life of a process, from its environment to its exit status.

    `uvloop` is used where it is installed; a service that starts processes as another account cannot have it.
    """
    environ = os.environ if environ is None else environ
    in_use = SettingsInUse.from_environ(environ)
    try:
        settings, refused = in_use.load(settings_type, role, environ)
        lifeline_fd = lifeline.inherited(environ)
    except (SettingsError, ValueError) as error:
        sys.stderr.write(f"kettle {role}: {error}\n")
        return EXIT_SETTINGS
    rotation = logs.Rotation(settings.home_path / "log", settings.log_max_mib << 20, settings.log_rotations)
    logs.setup(
        role, level=in_use.log_level() or settings.log_level, style=settings.log_format, rotation=rotation
    )
    faulthandler.enable(_STDERR)  # not sys.stderr: what hangs or breaks may be what stands before it
    # Our memory holds tokens and keys: it is not to be left behind in a file.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    gc.freeze()  # the modules stay: no collection has to look at them again, not even those at the end
    gc.set_threshold(_COLLECTED_AFTER)
    notifier = Notifier.from_environ(environ)
    if refused:
        _log.error("goes on with the settings that it had: %s", refused)
        notifier.send(_refusal(refused))
    rt = Runtime(role, drain=drain, notifier=notifier, works=partial(in_use.keep, role, settings))
    rt.on_reread(lambda: logs.change_level(in_use.log_level() or settings.log_level))
    try:
        with asyncio.Runner(loop_factory=_loop_factory(wanted=uvloop)) as runner:
            load = partial(settings_type.load, role, environ=environ)
            runner.run(_main(rt, settings, serve, lifeline_fd, load))
    except Exception as error:  # noqa: BLE001 - the one place that may: it ends the process and says why
        failures = leaves(error)
        for failure in failures:
            _tell(failure)
        unusable = [str(failure) for failure in failures if isinstance(failure, SettingsError)]
        return EXIT_RENEWED if unusable and in_use.refuse(role, settings, unusable[0]) else EXIT_FAILED
    finally:
        notifier.close()
    _log.info("stopped", extra={"pid": os.getpid()})
    return EXIT_RENEWED if rt.renewed else EXIT_CLEAN


def _refusal(why: str) -> str:
    """The notification that other settings are not used."""
    return f"{SETTINGS_SAID}=refused: {' '.join(why.split())}"


def _tell(failure: BaseException) -> None:
    if isinstance(failure, FencedError):  # no fault of ours: another process does the work now
        _log.warning("overtaken: %s", failure, extra={"pid": os.getpid()})
        return
    said = str(failure) or type(failure).__name__
    _log.critical("failed: %s", said, exc_info=failure, extra={"pid": os.getpid()})


async def _main(
    rt: Runtime, settings: S, serve: Serve[S], lifeline_fd: int | None, load: Callable[[], Settings]
) -> None:
    loop = asyncio.get_running_loop()
    for number, how in _STOPS.items():
        loop.add_signal_handler(number, rt.stop, how)
    loop.add_signal_handler(signal.SIGHUP, rt.reconfigure, load, settings)
    if lifeline_fd is not None:

        def orphaned() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends anyway
                loop.call_soon_threadsafe(rt.abort)

        lifeline.watch(lifeline_fd, orphaned)
    await rt.host(settings, serve)


def leaves(error: BaseException) -> list[BaseException]:
    """The failures inside nested groups, each once, in the order in which they happened."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [leaf for part in group.exceptions for leaf in leaves(part)]


def _loop_factory(*, wanted: bool) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if not wanted:
        return None
    try:
        factory: Callable[[], asyncio.AbstractEventLoop] = importlib.import_module("uvloop").new_event_loop
    except ModuleNotFoundError:
        return None
    return factory
