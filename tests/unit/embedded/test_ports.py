"""Ports that are chosen by who will listen there a moment later."""

import socket
from pathlib import Path

import pytest

from kettle.embedded.errors import EmbeddedError
from kettle.embedded.ports import free_ports, hold, kept_port, listens
from kettle.testing.servers.held_port import held_port


def test_a_held_port_is_chosen_by_nobody_else(tmp_path: Path) -> None:
    """But who holds it may listen there, and be found at the same port again."""
    (port,) = free_ports(1)
    file = tmp_path / "port"
    file.write_text(str(port))
    with hold(port):
        with pytest.raises(EmbeddedError, match="No free port"):
            free_ports(1, among=range(port, port + 1))
        assert port == kept_port(file)
        with socket.create_server(("127.0.0.1", port)):
            assert listens(port)


def test_a_port_that_is_in_use_is_left_to_who_has_it() -> None:
    """To hold it changes nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        hold(port).close()
        assert listens(port)


def test_a_test_has_its_port_for_itself() -> None:
    """It may listen there, stop and listen again; between that connections are refused."""
    port = held_port()
    for _ in range(2):
        assert not listens(port)
        with socket.create_server(("127.0.0.1", port)):
            assert listens(port)
    with pytest.raises(EmbeddedError):
        free_ports(1, among=range(port, port + 1))
