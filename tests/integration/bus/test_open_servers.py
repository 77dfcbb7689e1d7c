"""A bus that lets everybody in is told from one that does not."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kettle.bus.open_servers import open_servers, warning
from kettle.embedded import EmbeddedNats
from kettle.embedded.binaries import nats_server
from kettle.retry.deadline import Deadline
from kettle.testing.patience import PATIENCE_S


@pytest.fixture
def open_nats(directory: Path) -> Iterator[str]:
    """A server of which nobody has thought."""
    words = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(directory)]
    with subprocess.Popen([nats_server(), *words], stderr=subprocess.DEVNULL) as server:
        try:
            file = directory / f"nats-server_{server.pid}.ports"
            deadline = Deadline(PATIENCE_S)
            while not (file.exists() and file.read_text().rstrip().endswith("}")):
                assert not deadline.passed
                time.sleep(0.02)
            yield json.loads(file.read_text())["nats"][0]
        finally:
            server.terminate()


async def test_a_server_with_keys_is_not_open(directory: Path) -> None:
    """A pool's own server asks for keys; one that does not answer is not called open."""
    keys = directory / "credentials"
    async with EmbeddedNats(directory / "nats", credentials=keys, permissions={}) as server:
        assert [] == open_servers(server.url)
    assert [] == open_servers("nats://127.0.0.1:1")
    assert "" == warning([])


def test_an_open_server_is_named(open_nats: str) -> None:
    """With what it means."""
    [server] = open_servers(f"nats://127.0.0.1:1,{open_nats}", within=PATIENCE_S)
    assert server in open_nats
    assert f"the bus at {server} asks for no credentials" in warning([server])
