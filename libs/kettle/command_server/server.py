"""A person's command server, from its start to its end."""

import gc
import importlib
import os
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kettle.command_server import asking
from kettle.command_server.forks import Forks
from kettle.command_server.order import Order
from kettle.command_server.worker import Assignment

IDLE_S: Final = 60.0
"""Seconds without a command after which a server ends."""
FILES_S: Final = 1.0
"""Seconds after which each file of the program is looked at again; to look at all takes longer than most commands."""


def serve(
    address: str, installation: str, modules: Iterable[str], own: Sequence[int] = ()
) -> Assignment | None:
    """
    Be the server at an address until it is not used any more: None. Returns in each forked process, too: what it is to be.

    `installation`: of those who are served, see `asking.context`. `modules`: those that the commands need; they are loaded
    before the first order is taken. `own`: descriptors of the server that no command has.

    Raises:
        OSError: there is no place for the address.
        NoServerError: nobody can be forked for a process like this one.
    """
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    files = [path for module in sys.modules.values() if (path := getattr(module, "__file__", None))]
    program = ProgramFiles([*files, sys.executable])
    context, rights = asking.context(installation), asking.rights()
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    Path(address).unlink(missing_ok=True)  # of one that was killed
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()

        def accepts(order: Order, process: int) -> bool:
            forks.ending = forks.ending or program.have_changed()  # another version is another program
            if forks.ending or order.context != context or not process:
                return False
            try:
                return asking.rights(process) == rights  # its own word is not enough: it may be confined
            except OSError:
                return False

        forks = Forks(listener, accepts, own=own)
        assigned = forks.serve(IDLE_S)
        if assigned is not None:
            return assigned
        Path(address).unlink()
        forks.turn_away()
    return None


class ProgramFiles:
    """
    The files that a process has loaded: what is put in the place of one changes its directory, of which there are few; each file
    itself, which somebody may also write over, is looked at less often.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self._directories = sorted({os.path.dirname(path) for path in files})  # noqa: PTH120 - of names that are kept
        self._before = _changes(self._directories), _changes(files)
        self._looked = time.monotonic()

    def have_changed(self) -> bool:
        """Whether they are not what they were."""
        if _changes(self._directories) != self._before[0]:
            return True
        if (now := time.monotonic()) - self._looked < FILES_S:
            return False
        self._looked = now
        return _changes(self._files) != self._before[1]


def _changes(paths: Sequence[str]) -> Sequence[int]:
    """
    When files were last changed or put in their places, ns since the epoch: packages bring the times of their contents along.
    """
    changes: list[int] = []
    for path in paths:
        with suppress(OSError):  # what is gone, or cannot be looked at any more, has changed
            changes.append(os.stat(path).st_ctime_ns)  # noqa: PTH116 - some hundred
    return changes
