"""`kettle up`: from nothing to a pool that takes jobs."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import POLLIN, poll
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from kettle.pool import processes
from kettle.pool.daemon_states import MasterState, read_state
from kettle.pool.errors import StartFailedError
from kettle.pool.home import Home, open_home
from kettle.pool.log_tail import log_tail
from kettle.pool.master_lock import MasterLock, holder
from kettle.pool.personal_settings import Tables, write_settings
from kettle.retry.deadline import Deadline
from kettle.runtime import lifeline

MASTER: Final = "kettle_services.master"
"""The program, a module of Python's."""

UP_S: Final = 60.0
_NOT_INHERITED: Final = frozenset(
    {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", lifeline.VARIABLE, lifeline.OF_JOBS}
)

Progress = Callable[[str], None]


class MasterProcess(Protocol):
    """A master that runs, as `subprocess` has it."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def opened(self) -> int:
        """A process descriptor of it, which is for the caller to close."""
        ...

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal, if it lives."""
        ...

    def kill(self) -> None:
        """SIGKILL, if it lives."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """
        Wait for its end; its exit status, or minus the number of the signal that killed it.

        Raises:
            subprocess.TimeoutExpired: it lives after that many seconds.
        """
        ...


LaunchMaster = Callable[[Mapping[str, str], Path, int, Sequence[int]], MasterProcess]
"""
Start a master, in a session of its own: with this environment, working directory, file for its output and errors, and files
that stay open under the same numbers.
"""


class _Executed(subprocess.Popen[bytes]):
    def opened(self) -> int:
        return os.pidfd_open(self.pid)  # until it is waited for, the number is its own


def execute(environ: Mapping[str, str], cwd: Path, output: int, fds: Sequence[int]) -> MasterProcess:
    """An interpreter of its own."""
    return _Executed(
        [sys.executable, "-P", "-m", MASTER],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env=environ,
        cwd=cwd,
        pass_fds=fds,
        start_new_session=True,
    )


class Started(msgspec.Struct, frozen=True):
    """The running pool, and whether this call has started it."""

    home: Path
    state: MasterState
    new: bool


def up(
    home: Path,
    *,
    settings: Tables | None = None,
    environ: Mapping[str, str] | None = None,
    progress: Progress = lambda _: None,
    deadline_s: float = UP_S,
    lifeline_fd: int | None = None,
    launch: LaunchMaster = execute,
) -> Started:
    """
    Start the personal pool of `home`, or find it running; returns when it accepts jobs.

    `settings` go into the pool's `kettle.toml` if there is none yet.  `environ` replaces what the pool's processes
    inherit from this one.  `progress` receives short sentences about what happens.  With `lifeline_fd` (see
    `kettle.runtime.lifeline`) the pool ends with the process that holds the other end; without, it stays.  `launch` starts
    the master.

    Raises:
        HomeRefusedError: the directory cannot be a pool's home.
        StartFailedError: the pool did not come up.
    """
    place = open_home(home)
    deadline = Deadline(deadline_s)
    while (lock := MasterLock.take(place)) is None:
        if (found := _running(place, progress, deadline)) is not None:
            return Started(place.path, found, new=False)
    try:
        environ = os.environ if environ is None else environ
        if "KETTLE_CONFIG" not in environ:
            write_settings(place, settings)
        with _Ears() as ears:
            variables, fds = _told(place, lock, environ, ears, lifeline_fd)

            def start(output: int) -> MasterProcess:
                return launch(variables, place.path, output, fds)

            return Started(place.path, _start(place, ears, start, progress, deadline), new=True)
    finally:
        lock.release()


def _running(home: Home, progress: Progress, deadline: Deadline) -> MasterState | None:
    """The pool of a living master, when it is ready; None if that master has ended meanwhile."""
    told = False
    while True:
        master, state = holder(home), read_state(home)
        if master is not None and state is not None and state.pid == master.pid and state.ready:
            return state
        if not told:
            progress("another `kettle up` is starting this pool")
            told = True
        if deadline.passed:
            raise StartFailedError(
                "The pool is being started by another process and is not ready.", _log(home), ""
            )
        if (lock := MasterLock.take(home)) is not None:
            lock.release()
            return None
        time.sleep(0.02)


def _told(
    home: Home, lock: MasterLock, environ: Mapping[str, str], ears: "_Ears", lifeline_fd: int | None
) -> tuple[dict[str, str], list[int]]:
    """The environment of the master, and the open files that it is given."""
    variables = {name: value for name, value in environ.items() if name not in _NOT_INHERITED}
    variables |= processes.mark(home.pool_id())
    variables |= {
        "KETTLE_HOME": str(home.path),
        "KETTLE_MASTER_LOCK_FD": str(lock.fd),
        "NOTIFY_SOCKET": str(ears.path),
    }
    if lifeline_fd is None:
        return variables, [lock.fd]
    return variables | {lifeline.VARIABLE: str(lifeline_fd)}, [lock.fd, lifeline_fd]


def _start(
    home: Home,
    ears: "_Ears",
    launch: Callable[[int], MasterProcess],
    progress: Progress,
    deadline: Deadline,
) -> MasterState:
    log = _log(home)
    said = log.stat().st_size if log.exists() else 0
    progress("starting the master")
    with log.open("ab") as output:
        master = launch(output.fileno())
    try:
        why = ears.wait_ready(master, progress, deadline)
        state = read_state(home)
        if not why and state is not None:
            _let_go(master)
            return state
    except BaseException:
        _abandon(home, master)
        raise
    _abandon(home, master)
    raise StartFailedError(why or "The master wrote no state.", log, log_tail(log, said))


def _let_go(master: MasterProcess) -> None:
    """Outlive it or be outlived by it; if we are still there at its end, it leaves no zombie."""
    threading.Thread(target=master.wait, name="reap the master", daemon=True).start()


def _abandon(home: Home, master: MasterProcess) -> None:
    """
    End a master that did not come up, and with it whatever it has started; jobs of an earlier one may have a better one yet.
    """
    with suppress(ProcessLookupError):
        master.send_signal(signal.SIGTERM)
    try:
        master.wait(5.0)
    except subprocess.TimeoutExpired:
        master.kill()
        master.wait()
    us = frozenset({os.getpid()})
    processes.end_all(lambda: processes.of_services(home.pool_id(), home.execute, but=us))


class _Ears:
    """Receives the messages of the master while it starts."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="kettle-up-"))
        self.path = self._directory / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.setblocking(False)
        self._socket.bind(str(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def wait_ready(self, master: MasterProcess, progress: Progress, deadline: Deadline) -> str:
        """Wait until the master is ready; what went wrong, or nothing."""
        handle = master.opened()
        waiting = poll()
        waiting.register(self._socket, POLLIN)
        waiting.register(handle, POLLIN)
        try:
            while (left := deadline.left()) > 0:
                events = {fd for fd, _ in waiting.poll(left * 1000)}
                if self._hear(progress):
                    return ""
                if handle in events:
                    return f"The master ended with {ending(master.wait())} while the pool was being started."
        finally:
            os.close(handle)
        return "The pool is not ready after the time given to it."

    def _hear(self, progress: Progress) -> bool:
        while True:
            try:
                said = self._socket.recv(4096).decode(errors="replace")
            except BlockingIOError:
                return False
            for line in said.splitlines():
                name, _, value = line.partition("=")
                if name == "STATUS":
                    progress(value)
                elif line == "READY=1":
                    return True


def ending(status: int) -> str:
    """How a process ended, in words."""
    return f"status {status}" if status >= 0 else signal.Signals(-status).name


def _log(home: Home) -> Path:
    return home.log / "master.log"
