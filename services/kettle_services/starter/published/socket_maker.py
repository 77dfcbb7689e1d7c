"""
Sockets in networks of the job's containers, for the process that keeps the job's tunnel.

Networks that an engine or runc has made belong to root, and that process has become the job's account.  So a process beside it stays root
and does one thing: it makes sockets that are connected with nothing, in networks of processes of this job.  The job could make the
same there itself.
"""

import ctypes
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable
from typing import Final, NoReturn

from kettle.execution.attempts.job_spec import Account
from kettle.execution.containers.loopback import NetworkSockets

_SET_DEATH_SIGNAL: Final = 1
_ASKED: Final = struct.Struct(">IB")
"""A process, and a family of addresses."""
_PATIENCE_S: Final = 30.0
_FAMILIES: Final = frozenset({socket.AF_INET, socket.AF_INET6})

Pids = Callable[[], list[int]]


class JobNetworks:
    """Makes sockets in them, by forks of this process, one for each network."""

    def __init__(self, account: Account | None = None) -> None:
        """
        `account`: whose user namespaces they are, where they are in any; None: this process is that account.
        """
        self._account = account
        self._known: dict[str, NetworkSockets] = {}

    def make(self, pid: int, family: int) -> socket.socket:
        """One in the network of a process; raises OSError."""
        network = network_of(pid)
        known = self._known.get(network)
        if known is None or not known.lives:
            known = self._known[network] = NetworkSockets(pid, self._account)
        return known.make(family)


class SocketMaker:
    """The process that stays root; it ends when this end of it is closed, and with its parent."""

    def __init__(self, account: Account, pids: Pids) -> None:
        """`pids`: the job's processes at any time. Raises OSError: there can be no process."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            self._ours.close()
            _serve(theirs, account, pids, parent)
        theirs.close()
        self._ours.settimeout(_PATIENCE_S)

    def make(self, pid: int, family: int) -> socket.socket:
        """One in the network of a process of the job; raises OSError."""
        try:
            self._ours.send(_ASKED.pack(pid, family))
            said, fds, _, _ = socket.recv_fds(self._ours, 256, 1)
        except OSError:
            self._ours.close()  # an answer that comes late would be taken for that to the next question
            raise
        if not fds:
            raise OSError(said.decode(errors="replace") or "its maker has ended")
        os.set_inheritable(fds[0], False)
        return socket.socket(fileno=fds[0])

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        os.waitpid(self._child, 0)


def _serve(theirs: socket.socket, account: Account, pids: Pids, parent: int) -> NoReturn:
    """In the process: one for each question, until nobody asks any more."""
    try:
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        networks = JobNetworks(account)
        while os.getppid() == parent and (asked := theirs.recv(_ASKED.size)):
            try:
                made = _made(networks, pids, *_ASKED.unpack(asked))
            except (OSError, struct.error) as error:
                theirs.send(str(error).encode()[:256] or b"it cannot be made")
                continue
            with made:
                socket.send_fds(theirs, [b"+"], [made.fileno()])
    except BaseException as error:  # noqa: BLE001 - the runner of this process: it says why and ends it
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(0)


def _made(networks: JobNetworks, pids: Pids, pid: int, family: int) -> socket.socket:
    """Raises OSError: that is none of the job's, or no such socket can be made."""
    if pid not in pids() or family not in _FAMILIES:
        raise ProcessLookupError("no process of the job has asked for such a socket")
    made = networks.make(pid, family)
    if pid not in pids():  # it may have ended meanwhile, and its number be that of another job's process
        made.close()
        raise ProcessLookupError("no process of the job has asked for such a socket any more")
    return made


def network_of(pid: int) -> str:
    """Names the network of a process; empty: it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 - a string
    except OSError:
        return ""
