"""
A socket in a private directory, at which only its owner can listen and ask.

A port of this machine is anybody's who comes first, as long as its service is away; who sends a secret there may send it to
another account.
"""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kettle.auth.private_files import private_directory

_WAITING: Final = 128


def listening(path: Path) -> socket.socket:
    """A socket that listens there, also if one was left behind."""
    private_directory(path.parent)
    path.unlink(missing_ok=True)
    made = _at(path, lambda each, place: each.bind(place))
    path.chmod(0o600)
    made.listen(_WAITING)
    made.setblocking(False)
    return made


def connected(path: Path, patience_s: float) -> socket.socket:
    """
    A connection to who listens there. Raises OSError: nobody does; PermissionError: it may be somebody else's.
    """
    about = path.parent.stat()
    if about.st_uid not in {os.geteuid(), 0} or about.st_mode & 0o022:
        raise PermissionError(f"{path.parent} can be changed by others than this account")
    made = _at(path, lambda each, place: each.connect(place))
    made.settimeout(patience_s)
    return made


def _at(path: Path, do: Callable[[socket.socket, str], None]) -> socket.socket:
    """
    By the directory's number: the path of a socket has 107 bytes at most, and that of a pool is as long as it is.
    """
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        do(made, f"/proc/self/fd/{directory}/{path.name}")
    except OSError:
        made.close()
        raise
    finally:
        os.close(directory)
    return made
