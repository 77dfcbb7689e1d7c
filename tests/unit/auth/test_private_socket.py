"""A socket that only its owner can listen at."""

from pathlib import Path

import pytest

from kettle.auth.private_socket import connected, listening
from kettle.testing.patience import PATIENCE_S


def test_it_is_there_under_a_long_path_and_after_a_crash(tmp_path: Path) -> None:
    """What a killed service has left behind is in nobody's way, and nobody else can ask."""
    path = tmp_path / ("x" * 120) / "socket"
    listening(path).close()
    with pytest.raises(ConnectionRefusedError):
        connected(path, PATIENCE_S)
    with listening(path) as server, connected(path, PATIENCE_S) as client:
        server.setblocking(True)
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x")
            assert b"x" == accepted.recv(1)
    assert (0o700, 0o600) == (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777)


def test_nothing_is_said_where_others_could_listen(tmp_path: Path) -> None:
    """A directory into which others can write may hold the socket of one of them."""
    with listening(tmp_path / "open" / "socket"):
        (tmp_path / "open").chmod(0o777)
        with pytest.raises(PermissionError, match="can be changed by others"):
            connected(tmp_path / "open" / "socket", PATIENCE_S)
