"""
The zygote: a small warm process that becomes a starter on request; this is its own side.

A fresh interpreter costs 110 ms of imports, a fork of a warm one 0.5 ms.  A request is one byte and one socket; the
zygote forks and never looks at the socket, so it has nothing to parse, to allocate or to get wrong.  What it has not
imported its children need not carry: `threading` alone would cost each of them 0.3 ms.  Its children are
reaped by the kernel, and orphans of a starter that was killed come to it and are reaped the same way.
"""

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from kettle.execution.system.linux import become_subreaper

REQUEST: Final = b"+"
NO_LIFELINE: Final = -1
_UMASK: Final = 0o022


def serve(sock: socket.socket, lifeline_fd: int, start: Callable[[socket.socket], None]) -> bool:
    """
    Be a zygote until the startd ends, or the lifeline of its jobs; `start` is called in each child.  Returns whether it was
    the lifeline.
    """
    become_subreaper()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, and a job would inherit that
    os.umask(_UMASK)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    gc.collect()
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    gc.disable()
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    if lifeline_fd != NO_LIFELINE:
        os.set_inheritable(lifeline_fd, False)
        poll.register(lifeline_fd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if lifeline_fd in ready:
            return True
        request, fds, _flags, _ = socket.recv_fds(sock, len(REQUEST), 1)
        if not request:
            return False
        for fd in fds:
            os.set_inheritable(fd, False)  # a job must not inherit its starter's line
            with socket.socket(fileno=fd) as starter, contextlib.suppress(BlockingIOError, MemoryError):
                if os.fork() == 0:
                    _become(sock, starter, start)


def _become(sock: socket.socket, starter: socket.socket, start: Callable[[socket.socket], None]) -> NoReturn:
    """In the child: never return into the zygote's loop."""
    status = 1
    try:
        sock.close()
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        start(starter)
        status = 0
    except BaseException as error:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()
        os._exit(status)
