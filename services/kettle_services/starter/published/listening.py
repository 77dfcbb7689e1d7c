"""
Who listens on a port: whether that is a process of the job, and where it can be connected to.

The kernel lists sockets of a network in /proc/PID/net/tcp, each with its inode; a process of the job that has a descriptor of that
inode has the socket.  Another user's service on the machine is none of the job's, whatever its port.
"""

import os
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import msgspec

from kettle.published.errors import StreamCode

_LISTENS: Final = "0A"
"""The state in the table."""
_ANY4: Final = "0.0.0.0"  # noqa: S104 - what is compared, and not what we bind
_MAPPED: Final = "::ffff:"
"""How addresses of IPv4 begin among those of IPv6, where they are the same."""
_SOCKET: Final = "socket:["


class Listener(msgspec.Struct, frozen=True):
    """A socket of the job that listens."""

    host: str
    """The address at which it is connected to."""
    port: int
    pid: int
    """A process of the job in whose network it is."""


class NotListeningError(Exception):
    """Nothing of the job listens there; the text is one sentence."""

    def __init__(self, code: StreamCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def listener_of(port: int, pids: Iterable[int]) -> Listener:
    """
    The socket on which one of these processes listens at a port, at an address at which nobody else does: of several sockets at one
    (SO_REUSEPORT) the kernel takes any.

    Raises NotListeningError.
    """
    strangers = False
    for group in _by_network(pids):
        for host, owners in _owners(group[0], port, group).items():
            if all(owners):
                return Listener(host, port, owners[0])
            strangers = True
    if strangers:
        raise NotListeningError(
            StreamCode.NOT_OF_THIS_JOB, f"a process that is not of the job listens on port {port}"
        )
    raise NotListeningError(StreamCode.NOTHING_LISTENS, f"nothing of the job listens on port {port} yet")


def require_still(found: Listener, pids: Iterable[int]) -> None:
    """
    To be asked when the connection is there: who was found may have gone before that, and somebody else have come.

    Raises NotListeningError: so it is, or may be.
    """
    group = next((each for each in _by_network(pids) if found.pid in each), None)
    if group is None:
        raise NotListeningError(
            StreamCode.NOTHING_LISTENS, f"the process of the job that listened on port {found.port} has ended"
        )
    if not all(_owners(found.pid, found.port, group).get(found.host, [])):
        raise NotListeningError(
            StreamCode.NOT_OF_THIS_JOB,
            f"another process has taken port {found.port} of the job: try again when the job has it",
        )


def _owners(of: int, port: int, group: list[int]) -> dict[str, list[int]]:
    """
    By address, at which a connection reaches it, of each socket that listens who of the group has it; 0: nobody.
    """
    found: dict[str, list[int]] = {}
    for table in ("tcp", "tcp6"):
        for inode, host in _listening(of, table, port):
            owner = next((pid for pid in group if _has(pid, inode)), 0)
            found.setdefault(host, []).append(owner)
    return found


def _by_network(pids: Iterable[int]) -> list[list[int]]:
    """The processes of each network in which there are some."""
    found: dict[str, list[int]] = {}
    for pid in pids:
        with suppress(OSError):  # it has ended, or is not ours to look into
            found.setdefault(os.readlink(f"/proc/{pid}/ns/net"), []).append(pid)  # noqa: PTH115 - a string
    return list(found.values())


def _listening(pid: int, table: str, port: int) -> list[tuple[str, str]]:
    """Inode and address of each socket that listens at the port, in the network of a process."""
    try:
        with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:  # noqa: PTH123 - hot
            lines = file.readlines()[1:]
    except OSError:
        return []
    found: list[tuple[str, str]] = []
    for line in lines:
        fields = line.split()
        address, _, its = fields[1].rpartition(":")
        if fields[3] == _LISTENS and int(its, 16) == port:
            found.append((fields[9], _host(address)))
    return found


def _host(address: str) -> str:
    """An address as the table has it: words of four bytes, as this machine's processor writes them."""
    raw = b"".join(
        int(address[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(address), 8)
    )
    if len(raw) == 4:
        host = socket.inet_ntop(socket.AF_INET, raw)
        return "127.0.0.1" if host == _ANY4 else host
    host = socket.inet_ntop(socket.AF_INET6, raw)
    return "::1" if host == "::" else host.removeprefix(_MAPPED)


def _has(pid: int, inode: str) -> bool:
    """Whether a process has a descriptor of a socket."""
    wanted = f"{_SOCKET}{inode}]"
    try:
        names = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - hot
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{name}") == wanted:  # noqa: PTH115 - hot
                return True
    return False
