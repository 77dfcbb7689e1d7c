"""
The tests' side of the process that forks commands: one for each process of tests, started when it is first wanted.
"""

import atexit
import fcntl
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kettle import faults
from kettle.command_server.asking import HAND_BACK, LONGEST
from kettle.command_server.order import Order
from kettle.testing.patience import PATIENCE_S

_PROGRAM: Final = "kettle.testing.commands"
_PACKAGES: Final = ("kettle_services.cli", "kettle_services.condor")
_ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1"}
"""numpy's library makes its threads when it is loaded, and a process with threads cannot be forked."""
_READ_ONCE: Final = ("PYTHON", "LC_", "LANG", faults.VARIABLE)
"""Beginnings of variables that an interpreter, or one of our modules, reads when it starts."""
_OF_NO_CONSEQUENCE: Final = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"})
"""Variables that say how modules are kept and output is written, and not what it is."""
_NO_LOCALE: Final = {"LANG": "C.UTF-8"}
"""What an interpreter takes where no variable tells a locale."""
_ANSWER_BYTES: Final = 16
_LIFELINE: Final = 1000


class ForkingEndedError(Exception):
    """
    The process that forks commands has ended before its time; the message says what is known of its end.
    """


class Forked:
    """A command that runs until it ends, or until it is killed by `close`."""

    def __init__(self, told: socket.socket, ended: Callable[[], ForkingEndedError]) -> None:
        """`ended`: what became of the process that has forked it, when that is gone."""
        self.told = told
        """Becomes readable when it has ended."""
        self._ended = ended

    def status(self) -> int | None:
        """
        Its exit status, or minus the number of the signal that killed it; once `told` is readable.

        None: it has to be executed, and has done nothing.

        Raises:
            ForkingEndedError: nobody can tell how it has ended.
        """
        try:
            answer = self.told.recv(_ANSWER_BYTES)
        except ConnectionResetError:
            answer = b""
        if not answer:
            raise self._ended()
        return None if answer == HAND_BACK else int(answer)

    def close(self) -> None:
        """Kill it, if it still runs, with what it has started."""
        self.told.close()


class ForkingProcess:
    """The process that forks, which ends with this one."""

    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self._directory = tempfile.TemporaryDirectory(prefix="kettle-commands-")
        self._address = f"{self._directory.name}/server"
        self._errors = Path(self._directory.name, "errors")
        ours, theirs = socket.socketpair()
        with ours:
            self.lifeline = socket.socket(fileno=fcntl.fcntl(ours, fcntl.F_DUPFD_CLOEXEC, _above()))
        self._lifeline_is = os.fstat(self.lifeline.fileno())
        self._out_of_memory = _out_of_memory()
        self._how_ended = ""
        with (
            theirs,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
            self._errors.open("wb") as errors,
        ):
            listener.bind(self._address)
            listener.listen()
            numbers = [listener.fileno(), theirs.fileno()]
            self._began = time.monotonic()
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, *map(str, numbers), *_PACKAGES],
                stdin=subprocess.DEVNULL,
                stderr=errors,
                env=self.environ | _ONE_THREAD,
                pass_fds=numbers,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it, and the commands that still run."""
        self.lifeline.close()
        self.process.wait()
        self._directory.cleanup()

    def fork(self, data: bytes, cwd: Path, streams: Sequence[int]) -> Forked:
        """Have an order carried out, with these streams. Raises ForkingEndedError."""
        here = os.open(cwd, os.O_PATH | os.O_DIRECTORY)
        told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            told.connect(self._address)
            socket.send_fds(told, [data], [*streams, here])
        except (ConnectionError, FileNotFoundError) as error:
            told.close()
            raise self.ended() from error
        except BaseException:
            told.close()
            raise
        finally:
            os.close(here)
        told.setblocking(False)
        return Forked(told, self.ended)

    def ended(self) -> ForkingEndedError:
        """
        What is known of its end. The next command has another process: what fails of it says why, and that once.
        """
        if not self._how_ended:
            self._how_ended = self._post_mortem()
            if self in _now:
                _now.remove(self)
            atexit.unregister(self.close)
            if not self._lifeline_is_ours():
                self.lifeline.detach()  # the number is of somebody else now
            self.process.kill()
            self.close()
        return ForkingEndedError(self._how_ended)

    def _post_mortem(self) -> str:
        try:
            status = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            how = "takes no orders, and lives"
        else:
            how = (
                f"was killed by {signal.Signals(-status).name}" if status < 0 else f"has ended with {status}"
            )
        try:
            said = self._errors.read_text(errors="replace").strip()
        except FileNotFoundError:
            said = f"somebody has removed {self._errors}"
        number = self.lifeline.fileno()
        line = "is open" if self._lifeline_is_ours() else "was closed by who does not own it"
        return (
            f"the process that forks commands ({self.process.pid}, begun {time.monotonic() - self._began:.0f} s ago) {how}. "
            f"Its errors: {said or 'none'}. Its lifeline, descriptor {number} here, {line}. Since it began the kernel has "
            f"killed {_out_of_memory() - self._out_of_memory} processes of this machine for want of memory."
        )

    def _lifeline_is_ours(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self.lifeline.fileno()), self._lifeline_is)
        except OSError:
            return False


def _above() -> int:
    """
    A number that no file of this process has had: a test that closes a number twice closes that of something else.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _LIFELINE if soft == resource.RLIM_INFINITY else min(_LIFELINE, soft - 1)


def _out_of_memory() -> int:
    """How many processes the kernel has killed since the machine booted because there was no memory."""
    counts = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return int(counts.get("oom_kill", 0))


def fork(
    words: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: Sequence[int]
) -> Forked | None:
    """
    Have `python -P words` run with these standard streams.

    None: it has to be executed, since an interpreter of its own would begin otherwise, or since its words or variables are
    too many.

    Raises:
        ForkingEndedError: the process that is to fork it is gone.
    """
    process = _process()
    if _read_once(environ) != _read_once(process.environ):
        return None
    mask = os.umask(0o077)
    os.umask(mask)
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    data = Order(b"", mask, words, variables).written()
    return process.fork(data, cwd, streams) if len(data) <= LONGEST else None


def _read_once(environ: Mapping[str, str]) -> dict[str, str]:
    return _NO_LOCALE | {
        name: value
        for name, value in environ.items()
        if name.startswith(_READ_ONCE) and name not in _OF_NO_CONSEQUENCE
    }


def _process() -> ForkingProcess:
    if not _now:
        made = ForkingProcess()
        atexit.register(made.close)
        _now.append(made)
    return _now[0]


_now: Final[list[ForkingProcess]] = []
"""The one that takes orders, if one was wanted."""
