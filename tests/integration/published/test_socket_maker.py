"""
The process that stays root, and makes sockets in networks of a job's containers for who is not root any more.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager

import pytest

from kettle.execution.attempts.job_spec import Account
from kettle_services.starter.published.socket_maker import SocketMaker

NOBODY = Account(uid=65534, gid=65534)
SERVER = """\
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    plug, _ = server.accept()
    plug.sendall(b"inside")
    plug.close()
"""


@contextmanager
def in_a_network_of_root() -> Generator[tuple[int, int]]:
    """A server in a network as engines make it; its process and its port."""
    words = [shutil.which("unshare") or "", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    with subprocess.Popen(
        [*words, sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, int(process.stdout.readline())
        finally:
            process.kill()


def test_sockets_are_made_in_networks_of_the_job_alone() -> None:
    """
    Where the job's account could not enter the network; neither for a process that is none of the job's, nor in the network of the machine.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can start processes in networks that belong to root")
    with in_a_network_of_root() as (pid, port), ExitStack() as closing:
        outside = os.getppid()
        maker = SocketMaker(NOBODY, lambda: [pid, outside])
        closing.callback(maker.close)
        with maker.make(pid, socket.AF_INET) as made:
            made.settimeout(20)
            made.connect(("127.0.0.1", port))
            assert b"inside" == made.recv(100)
        with pytest.raises(OSError, match="no process of the job"):
            maker.make(os.getpid(), socket.AF_INET)
        with pytest.raises(OSError, match="cannot be joined"):
            maker.make(outside, socket.AF_INET)
        with pytest.raises(OSError, match="such a socket"):
            maker.make(pid, socket.AF_UNIX)
        with maker.make(pid, socket.AF_INET6) as again:
            assert again.family == socket.AF_INET6


def test_a_number_that_is_another_process_meanwhile_gives_no_socket() -> None:
    """A process of the job may end between the look and the making, and another job's have its number."""
    if os.geteuid() != 0:
        pytest.skip("only root can start processes in networks that belong to root")
    with in_a_network_of_root() as (pid, _), ExitStack() as closing:
        seen = iter([[pid], []])
        maker = SocketMaker(NOBODY, lambda: next(seen))
        closing.callback(maker.close)
        with pytest.raises(OSError, match="any more"):
            maker.make(pid, socket.AF_INET)
