"""
The zygote: a small warm process that becomes a starter on request.

A fresh interpreter costs 110 ms of imports, a fork of a warm one 0.5 ms.  A request is one byte and one socket; the
zygote forks and never looks at the socket, so it has nothing to parse, to allocate or to get wrong.  Its children are
reaped by the kernel, and orphans of a starter that was killed come to it and are reaped the same way.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from kettle.execution.linux import become_subreaper

_REQUEST = b"+"
_NO_LIFELINE = -1


class Zygote:
    """
    The startd's side.  The process lives until `close`, or until somebody kills it: then `request` raises.
    """

    def __init__(self, *, command: Sequence[str] = (), lifeline_fd: int | None = None) -> None:
        """
        `command` is what runs `serve`; it is given two more arguments, the numbers of the socket and of the lifeline.
        """
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = command or (sys.executable, "-P", "-m", "kettle.starter")
        lifeline = _NO_LIFELINE if lifeline_fd is None else lifeline_fd
        passed = (theirs.fileno(),) if lifeline_fd is None else (theirs.fileno(), lifeline_fd)
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(lifeline)],
                stdin=subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
            )
        self.socket.setblocking(False)

    @property
    def pid(self) -> int:
        """
        Its process id.
        """
        return self._process.pid

    def request(self, starter: socket.socket) -> None:
        """
        Have a starter forked that talks through `starter`; this end of it may be closed afterwards.

        Raises:
            OSError: the zygote is dead, or (BlockingIOError) has too much to do.
        """
        socket.send_fds(self.socket, [_REQUEST], [starter.fileno()])

    def close(self) -> None:
        """
        End it; its starters go on.
        """
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()


def serve(sock: socket.socket, lifeline_fd: int, start: Callable[[socket.socket], None]) -> int:
    """
    Be a zygote until the startd or the master is gone; `start` is called in each child.
    """
    become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    gc.disable()
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    if lifeline_fd != _NO_LIFELINE:
        os.set_inheritable(lifeline_fd, False)
        poll.register(lifeline_fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if lifeline_fd in ready:
            return 0
        request, fds, _flags, _ = socket.recv_fds(sock, len(_REQUEST), 1)
        if not request:
            return 0
        for fd in fds:
            with socket.socket(fileno=fd) as starter, contextlib.suppress(BlockingIOError, MemoryError):
                if os.fork() == 0:
                    _become(sock, starter, start)


def _become(sock: socket.socket, starter: socket.socket, start: Callable[[socket.socket], None]) -> NoReturn:
    """
    In the child: never return into the zygote's loop.
    """
    status = 1
    try:
        sock.close()
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        start(starter)
        status = 0
    except BaseException:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)
