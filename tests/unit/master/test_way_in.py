"""What the file for a host's programs says of the pool's iam."""

import socket
from pathlib import Path

from kettle.client.connections.pool_file import PoolFile
from kettle.embedded.ports import remembered_port
from kettle_services.master.way_in import keep_port, with_way_in


def said(home: Path) -> str:
    return with_way_in(PoolFile(nats_url="nats://127.0.0.1:1"), home, home / "sentinel", {}).iam_url


def test_an_iam_that_listens_keeps_its_port(tmp_path: Path) -> None:
    """A reconfiguration while it serves writes the same address again, though the port cannot be had by others."""
    keep_port(tmp_path)
    port = remembered_port(tmp_path / "iam" / "port")
    before = said(tmp_path)
    with socket.create_server(("127.0.0.1", port)):
        assert f"http://127.0.0.1:{port}" == before == said(tmp_path)
    assert port == remembered_port(tmp_path / "iam" / "port")


def test_a_port_that_somebody_has_taken_is_given_up_before_the_iam_starts(tmp_path: Path) -> None:
    """Iam and programs then know the other one."""
    keep_port(tmp_path)
    port = remembered_port(tmp_path / "iam" / "port")
    with socket.create_server(("127.0.0.1", port)):
        keep_port(tmp_path)
    other = remembered_port(tmp_path / "iam" / "port")
    assert port != other
    assert f"http://127.0.0.1:{other}" == said(tmp_path)
