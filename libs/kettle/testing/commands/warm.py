"""
The tests' side of the process that forks commands: one for each process of tests, started when it is first wanted.
"""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kettle import faults
from kettle.command_server.asking import HAND_BACK, LONGEST
from kettle.command_server.order import Order

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


class Forked:
    """A command that runs until it ends, or until it is killed by `close`."""

    def __init__(self, told: socket.socket) -> None:
        self.told = told
        """Becomes readable when it has ended."""

    def status(self) -> int | None:
        """
        Its exit status, or minus the number of the signal that killed it; once `told` is readable.

        None: it has to be executed, and has done nothing.
        """
        answer = self.told.recv(_ANSWER_BYTES)
        return None if answer == HAND_BACK else int(answer)

    def close(self) -> None:
        """Kill it, if it still runs, with what it has started."""
        self.told.close()


class _Process:
    def __init__(self) -> None:
        self.environ = dict(os.environ)
        self._directory = tempfile.TemporaryDirectory(prefix="kettle-commands-")
        self._address = f"{self._directory.name}/server"
        self._lifeline, theirs = socket.socketpair()
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._address)
            listener.listen()
            numbers = [listener.fileno(), theirs.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, *map(str, numbers), *_PACKAGES],
                stdin=subprocess.DEVNULL,
                env=self.environ | _ONE_THREAD,
                pass_fds=numbers,
                start_new_session=True,
            )

    def close(self) -> None:
        """End it, and the commands that still run."""
        self._lifeline.close()
        self._process.wait()
        self._directory.cleanup()

    def fork(self, data: bytes, cwd: Path, streams: Sequence[int]) -> Forked:
        here = os.open(cwd, os.O_PATH | os.O_DIRECTORY)
        told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            told.connect(self._address)
            socket.send_fds(told, [data], [*streams, here])
        except BaseException:
            told.close()
            raise
        finally:
            os.close(here)
        told.setblocking(False)
        return Forked(told)


def fork(
    words: Sequence[str], cwd: Path, environ: Mapping[str, str], streams: Sequence[int]
) -> Forked | None:
    """
    Have `python -P words` run with these standard streams.

    None: it has to be executed, since an interpreter of its own would begin otherwise, or since its words or variables are
    too many.
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


@cache
def _process() -> _Process:
    made = _Process()
    atexit.register(made.close)
    return made
