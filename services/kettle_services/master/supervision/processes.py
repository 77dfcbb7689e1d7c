"""What the master keeps running, behind one small interface: service processes and embedded servers."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Protocol

from kettle.embedded import EmbeddedNats, EmbeddedPostgres
from kettle.execution.system.linux import signal_child, signal_process, start_time
from kettle.pool.log_tail import log_tail
from kettle_services.master.supervision import hang_reports
from kettle_services.master.zygote.client import ForkedProcess, Process, ServiceZygote

_LOG_LIMIT: Final = 16 << 20
_ROOM: Final = 8 << 20
"""Free bytes without which a restart of a server that could not write would be useless."""


Asked = Literal["peaceful", "graceful", "fast", "kill", "abort", "renew"]

_SIGNALS: Final[Mapping[Asked, signal.Signals]] = {
    "peaceful": signal.SIGUSR1,
    "graceful": signal.SIGTERM,
    "fast": signal.SIGQUIT,
    "kill": signal.SIGKILL,
    "abort": signal.SIGABRT,
    "renew": signal.SIGHUP,
}


class Daemon(Protocol):
    """A process that can be started again after it has ended."""

    @property
    def name(self) -> str:
        """What it is called in the state file and in log lines."""
        ...

    @property
    def pid(self) -> int:
        """The process id; 0 if it does not run."""
        ...

    @property
    def notifies(self) -> bool:
        """
        Whether it says itself when it is ready, and gives signs of life; otherwise it is ready once it is started.
        """
        ...

    async def start(self) -> None:
        """Start the process.  Raises OSError or EmbeddedError."""
        ...

    async def wait(self) -> int:
        """Wait for the end of the process; its exit status, or minus the number of the signal."""
        ...

    def ask(self, what: Asked) -> None:
        """Have the process end in some way, or take on changed settings; nothing if it does not run."""
        ...

    def keep_stacks(self) -> Path | None:
        """
        After the end of one that was asked to `abort`: the file in which it is kept where it was; None if it is not known.
        """
        ...

    def last_words(self) -> str:
        """The end of what the process wrote since it was started."""
        ...

    def restart_reason(self) -> str:
        """Why it has to be started again although it runs, as soon as that helps; empty: it is well."""
        ...


class Service:
    """
    `python -m kettle_services.<role>` as a child process, in a session of its own, its output in a file of its own.
    """

    notifies = True

    def __init__(
        self,
        name: str,
        *,
        role: str = "",
        environ: Callable[[], Mapping[str, str]],
        log: Path,
        cwd: Path,
        fds: Sequence[int],
        zygote: ServiceZygote | None = None,
    ) -> None:
        """
        `role` is that of the name if it is left out; `fds` stay open in the process under the same numbers, and in the
        `zygote`, which forks it; without one it is executed.
        """
        self.name = name
        self._module = module_of(role or name)
        self._environ = environ
        self._log = log
        self._cwd = cwd
        self._fds = tuple(fds)
        self._zygote = zygote
        self._process: Process | None = None
        self._started: int | None = None
        self._said = 0
        self._hang: hang_reports.Hang | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 if it does not run."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def start(self) -> None:
        """Start the process: a fork of the zygote, or a program of its own where that cannot be had."""
        output = _open_log(self._log)
        self._said = self._log.stat().st_size
        environ = self._environ()
        try:
            forked: ForkedProcess | None = None
            if self._zygote is not None:
                forked = await self._zygote.launch(self._module, environ, self._cwd, output)
            self._process = forked or await self._execute(environ, output)
            self._started = start_time(self._process.pid)
            if forked is not None:
                forked.begin()
        finally:
            os.close(output)

    async def _execute(self, environ: Mapping[str, str], output: int) -> Process:
        """
        The kernel kills it when the master's main thread ends.  That catches one that is stopped or hangs, too; the
        zygote does the same for what it has forked.
        """
        return await asyncio.create_subprocess_exec(
            *_dying_with_us(),
            sys.executable,
            "-P",
            "-m",
            self._module,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environ),
            cwd=self._cwd,
            pass_fds=self._fds,
            start_new_session=True,
        )

    async def wait(self) -> int:
        """Wait for the end of the process."""
        assert self._process is not None, "not started"
        return await self._process.wait()

    def ask(self, what: Asked) -> None:
        """The signals of `kettle.runtime.service`."""
        if not self.pid:
            return
        if what == "abort":
            self._hang = hang_reports.inspect_process(self.pid, self._log)
        self._signal(_SIGNALS[what])
        self._signal(signal.SIGCONT)  # a stopped process would not handle the first signal

    def keep_stacks(self) -> Path | None:
        """What the service wrote when it was aborted, with what the kernel knew of it."""
        hang, self._hang = self._hang, None
        return hang_reports.write_report(hang, self._log, self.name) if hang is not None else None

    def last_words(self) -> str:
        """The end of the log since the last start."""
        return log_tail(self._log, self._said)

    def restart_reason(self) -> str:
        """Nothing: a service that cannot go on ends by itself."""
        return ""

    def _signal(self, number: signal.Signals) -> None:
        # Not by `Process.send_signal`: when the process has just ended, that reaps it, and its status is lost.
        if self.pid:
            signal_process(self.pid, number, started=self._started)


class Server:
    """
    An embedded server as a daemon: it is ready as soon as it is started, and knows itself how to be stopped.
    """

    notifies = False

    def __init__(self, name: str, server: EmbeddedNats | EmbeddedPostgres) -> None:
        self.name = name
        self._server = server
        self._ails = ""
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 if it does not run."""
        return self._server.pid if self._server.running else 0

    async def start(self) -> None:
        """Start the server; returns when it answers."""
        await self._server.start()

    async def wait(self) -> int:
        """Wait for the end of the server, and until it has released its directory."""
        status = await self._server.wait()
        if self._ending is not None:
            await self._ending
            self._ending = None
        return status

    def ask(self, what: Asked) -> None:
        """
        A server has its own sequence of signals and times to end, and no settings of ours to read again.
        """
        if what in {"kill", "abort"}:
            if pid := self.pid:
                signal_child(pid, signal.SIGKILL)
        elif what != "renew" and (self._ending is None or self._ending.done()):
            self._ending = asyncio.create_task(self._server.stop(), name=f"stop {self.name}")

    def keep_stacks(self) -> Path | None:
        """Nothing: a server gives no signs of life, so it is never missed."""
        return None

    def last_words(self) -> str:
        """Nothing: the error with which a server does not start has them."""
        return ""

    def restart_reason(self) -> str:
        """NATS does not store again by itself what it could not store once; PostgreSQL does."""
        server = self._server
        if isinstance(server, EmbeddedPostgres):
            return ""
        self._ails = self._ails or server.restart_reason()
        if not self._ails or shutil.disk_usage(server.directory).free < _ROOM:
            return ""
        ails, self._ails = self._ails, ""
        return ails


def module_of(role: str) -> str:
    """What a service is run as: `python -m` this."""
    return f"kettle_services.{role}"


def _dying_with_us() -> list[str]:
    found = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    return [found, "--pdeathsig=KILL", "--"] if found else []


def _open_log(log: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > _LOG_LIMIT:
            log.replace(log.with_suffix(".log.1"))
    return os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
