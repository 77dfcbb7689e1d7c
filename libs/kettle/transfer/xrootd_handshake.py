"""
The first words with a server of XRootD, to find out whether one is there: no program of XRootD is needed for them.

A client sends five numbers of four bytes, 0, 0, 0, 4, 2012; the server answers with its protocol version and its kind.
"""

import socket
import struct
from typing import Final
from urllib.parse import urlsplit

PORT: Final = 1094
_HELLO: Final = struct.pack("!5i", 0, 0, 0, 4, 2012)
_ANSWER: Final = struct.Struct("!HHiii")
"""Stream, status, length of what follows, version of the protocol, kind of server."""


def why_not(url: str, *, within_s: float) -> str:
    """Why no server of XRootD answers at `root://HOST:PORT`, as the end of a sentence; empty: one does."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or PORT
        with socket.create_connection((host, port), timeout=within_s) as connection:
            connection.settimeout(within_s)
            connection.sendall(_HELLO)
            said = _exactly(connection, _ANSWER.size)
    except TimeoutError:
        return f"{url} did not answer within {within_s:g} s"
    except (OSError, ValueError) as error:
        return f"{url} cannot be reached: {getattr(error, 'strerror', None) or error}"
    if len(said) < _ANSWER.size or _ANSWER.unpack(said)[:3] != (0, 0, 8):
        return f"what answers at {url} is no server of XRootD"
    return ""


def _exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes; fewer if the other side ends."""
    said = b""
    while len(said) < size and (piece := connection.recv(size - len(said))):
        said += piece
    return said
