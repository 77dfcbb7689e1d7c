"""A TCP port on the loopback interface that stays ours over restarts."""

import random
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from kettle.auth.private_files import write_private
from kettle.embedded.errors import EmbeddedError

# Below the range from which the kernel takes the ports of outgoing connections: ours is still free after a crash.
_PORTS: Final = range(10000, 32000)


def kept_port(path: Path) -> int:
    """
    The port that the file remembers if it can be had, else a free one, which the file then remembers.

    Only for who is about to listen there, or before that: to others the port of who listens cannot be had.
    """
    port = remembered_port(path)
    if port not in _PORTS or not _free(port):
        (port,) = free_ports(1)
        write_private(path, str(port))
    return port


def remembered_port(path: Path) -> int:
    """The port that the file remembers, also if it is in use; 0: it remembers none."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return 0


def hold(port: int) -> socket.socket:
    """
    Have nobody else choose the port until the socket is closed. A server that lets addresses be used again may listen there
    meanwhile. A port that somebody listens at already is left to them.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with suppress(OSError):
        holder.bind(("127.0.0.1", port))
    return holder


def free_ports(number: int, *, among: range = _PORTS) -> list[int]:
    """
    As many different ports on which nobody listens, and which nobody holds.

    Raises:
        EmbeddedError: there are not so many.
    """
    found: list[int] = []
    for port in random.SystemRandom().sample(among, min(len(among), 200)):
        if len(found) == number:
            break
        if _free(port, held=False):
            found.append(port)
    if len(found) < number:
        raise EmbeddedError(f"No free port for NATS between {among.start} and {among.stop}.")
    return found


def listens(port: int, host: str = "127.0.0.1") -> bool:
    """Whether somebody accepts connections there."""
    try:
        socket.create_connection((host, port)).close()
    except OSError:
        return False
    return True


def _free(port: int, *, held: bool = True) -> bool:
    """Whether one could listen at a port; with `held` also if somebody holds it, or has just had it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(held))
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
