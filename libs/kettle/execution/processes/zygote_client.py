"""Having a zygote: the startd's side of `kettle.execution.processes.zygote`."""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence

from kettle.execution.processes.ancestry import of_a_starter
from kettle.execution.processes.zygote import NO_LIFELINE, REQUEST


class Zygote:
    """
    The startd's side.  The process lives until `close`, or until somebody kills it: then `request` raises.
    """

    def __init__(self, execute: str, *, command: Sequence[str] = (), lifeline_fd: int | None = None) -> None:
        """
        `command` is what runs `serve`; it is given three more arguments: the numbers of the socket and
        of the lifeline, and `execute`, where the sandboxes are.
        """
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = command or (sys.executable, "-P", "-m", "kettle_services.starter")
        lifeline = NO_LIFELINE if lifeline_fd is None else lifeline_fd
        passed = (theirs.fileno(),) if lifeline_fd is None else (theirs.fileno(), lifeline_fd)
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(lifeline), execute],
                stdin=subprocess.DEVNULL,
                env=of_a_starter(os.environ),
                pass_fds=passed,
                start_new_session=True,
            )
        self.socket.setblocking(False)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def request(self, starter: socket.socket) -> None:
        """
        Have a starter forked that talks through `starter`; this end of it may be closed afterwards.

        Raises:
            OSError: the zygote is dead, or (BlockingIOError) has too much to do.
        """
        socket.send_fds(self.socket, [REQUEST], [starter.fileno()])

    def close(self) -> None:
        """End it; its starters go on."""
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
