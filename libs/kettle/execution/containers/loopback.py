"""
A way into a container that has a network of its own: a socket that listens on its loopback device, and is ours.
"""

import fcntl
import os
import socket
import sys
from contextlib import ExitStack
from typing import Final, NoReturn

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.runtimes.namespaces import (
    GET_USERNS,
    NET,
    USER,
    identity,
    join_namespace,
    open_namespace,
)
from kettle.execution.processes.side_program import become_account

_HOST: Final = "127.0.0.1"
_PATIENCE_S: Final = 10.0


def loopback_listener(pid: int, account: Account | None, backlog: int) -> socket.socket:
    """
    A socket that listens, at any port, on the loopback device of the network of a process of the job's container.

    Raises:
        OSError: there is no way in.
    """
    sockets = NetworkSockets(pid, account)
    try:
        made = sockets.make(socket.AF_INET)
    finally:
        sockets.close()
    try:
        made.bind((_HOST, 0))
        made.listen(backlog)
    except BaseException:
        made.close()
        raise
    return made


def _join(pid: int, account: Account | None) -> None:
    """See `entering`: a user namespace of its own is the account's."""
    with ExitStack() as closing:
        network = open_namespace(f"/proc/{pid}/ns/net", closing)
        if identity(network) == identity(open_namespace("/proc/self/ns/net", closing)):
            raise ProcessLookupError("the process has no network of its own")
        owner = fcntl.ioctl(network, GET_USERNS)
        closing.callback(os.close, owner)
        if identity(owner) != identity(open_namespace("/proc/self/ns/user", closing)):
            become_account(account)
            join_namespace(owner, USER)
        join_namespace(network, NET)


class NetworkSockets:
    """
    Sockets of the network of a process of the job's container, made by a fork of ours that has joined it: they stay there, also in
    another process.
    """

    def __init__(self, pid: int, account: Account | None = None) -> None:
        """`account`: see `loopback_listener`. Raises OSError: there can be no fork."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = os.fork()
        if child == 0:
            _make_sockets(pid, account, self._ours, theirs)
        theirs.close()
        self._child = child
        self._ours.settimeout(_PATIENCE_S)
        self.lives = True
        """Whether it makes some more."""

    def make(self, family: int) -> socket.socket:
        """One that is not connected. Raises OSError: there is no way in, any more."""
        try:
            self._ours.send(bytes([family]))
            _, fds, _, _ = socket.recv_fds(self._ours, 1, 1)
        except OSError as error:
            self.close()
            raise OSError("the network of the container cannot be joined") from error
        if not fds:
            self.close()
            raise OSError("the network of the container cannot be joined")
        os.set_inheritable(fds[0], False)
        return socket.socket(fileno=fds[0])

    def close(self) -> None:
        """End the fork."""
        if self.lives:
            self.lives = False
            self._ours.close()
            os.kill(self._child, 9)
            os.waitpid(self._child, 0)


def _make_sockets(pid: int, account: Account | None, ours: socket.socket, theirs: socket.socket) -> NoReturn:
    """In the fork: one for each byte, which is its family, until nobody asks any more."""
    try:
        ours.close()
        _join(pid, account)
        while asked := theirs.recv(1):
            with socket.socket(asked[0], socket.SOCK_STREAM) as made:
                socket.send_fds(theirs, [b"+"], [made.fileno()])
    except BaseException as error:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(0)
