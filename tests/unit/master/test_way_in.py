"""What the file for a host's programs says of the pool's iam."""

import socket
from pathlib import Path

from kettle.client.connections.pool_file import PoolFile
from kettle_services.master.iam_port import keep_port, port
from kettle_services.master.way_in import with_way_in


def said(home: Path) -> str:
    return with_way_in(PoolFile(nats_url="nats://127.0.0.1:1"), home, home / "sentinel", {}).iam_url


def test_an_iam_that_listens_keeps_its_port(tmp_path: Path) -> None:
    """
    A reconfiguration while it serves writes the same address again, though the port cannot be had by others.
    """
    chosen = keep_port(tmp_path)
    before = said(tmp_path)
    with socket.create_server(("127.0.0.1", chosen)):
        assert f"http://127.0.0.1:{chosen}" == before == said(tmp_path)
    assert chosen == port(tmp_path)


def test_a_port_that_somebody_has_taken_is_given_up_before_the_iam_starts(tmp_path: Path) -> None:
    """Iam and programs then know the other one."""
    taken = keep_port(tmp_path)
    with socket.create_server(("127.0.0.1", taken)):
        chosen = keep_port(tmp_path)
    assert taken != chosen
    assert f"http://127.0.0.1:{chosen}" == said(tmp_path)
