"""
The tests' side of the process that forks commands: one for each process of tests, started when it is first wanted.
"""

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from kettle import faults
from kettle.testing.commands.serving import LONGEST, Ended, Order

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

_encode: Final = msgspec.msgpack.Encoder().encode
_ended: Final = msgspec.msgpack.Decoder(Ended).decode


class Forked:
    """A command that runs until it ends, or until it is killed by `close`."""

    def __init__(self, told: socket.socket) -> None:
        self.told = told
        """Becomes readable when it has ended."""

    def status(self) -> int:
        """Its exit status, or minus the number of the signal that killed it; once `told` is readable."""
        return _ended(self.told.recv(LONGEST)).status

    def close(self) -> None:
        """Kill it, if it still runs, with what it has started."""
        self.told.close()


class _Process:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environ = dict(os.environ)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno()), *_PACKAGES],
                stdin=subprocess.DEVNULL,
                env=self.environ | _ONE_THREAD,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._orders = ours

    def close(self) -> None:
        """End it, and the commands that still run."""
        self._orders.close()
        self._process.wait()

    def fork(self, data: bytes, streams: Sequence[int]) -> Forked:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            socket.send_fds(self._orders, [data], [*streams, theirs.fileno()])
        return Forked(ours)


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
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    data = _encode(Order([os.fsencode(word) for word in words], variables, os.fsencode(cwd)))
    return process.fork(data, streams) if len(data) <= LONGEST else None


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
