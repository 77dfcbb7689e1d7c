"""
A command server does what an interpreter of its own would have done, for one account and one context, or nothing.
"""

import os
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from kettle.command_server import asking
from kettle.command_server.forks import Forks
from kettle.command_server.order import MalformedOrderError, Order

_ROOT: Final = os.geteuid() == 0
SERVER: Final = """\
import os, sys
from kettle.command_server import server
server.IDLE_S = {idle_s}
words = server.serve({address!r}, {modules!r})
if words is not None:
    exec(words[1])
"""
ADDRESS: Final = """\
from kettle.command_server import asking
print(asking.socket_path(asking.directory(), asking.context()), end='')
"""
CALLER: Final = """\
import sys
sys.path[:] = {paths!r}
from kettle.command_server import asking
print("began", flush=True)
status = asking.forked(["command", *sys.argv[1:]])
print("by itself" if status is None else status)
"""


class Place:
    """A directory of sockets, and what is said and asked there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environ = {**os.environ, "XDG_RUNTIME_DIR": str(directory), asking.VARIABLE: "on"}
        self.servers: list[subprocess.Popen[bytes]] = []

    def serve(self, *modules: str, idle_s: float = 60.0) -> subprocess.Popen[bytes]:
        """A server for callers of `ask`, which takes orders when this returns."""
        address = self.address()
        text = SERVER.format(address=address, modules=modules, idle_s=idle_s)
        server = subprocess.Popen([*self._python(), self._paths() + text], env=self.environ)
        self.servers.append(server)
        while not Path(address).exists() or not _listens(address):
            assert server.poll() is None
        return server

    def address(self) -> str:
        """Where callers of `ask` look for a server."""
        program = [*self._python(), self._paths() + ADDRESS]
        done = subprocess.run(program, env=self.environ, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    def ask(
        self, program: str, typed: bytes = b"", before: Sequence[str] = (), **variables: str
    ) -> list[str]:
        """The lines that a caller and its command print."""
        done = subprocess.run(
            [*before, *self._python(), CALLER.format(paths=sys.path), program],
            input=typed,
            env=self.environ | variables,
            cwd=self.directory,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return done.stdout.decode().splitlines()

    def asking(self, program: str) -> "subprocess.Popen[bytes]":
        """One that asks, and is not waited for."""
        return subprocess.Popen(
            [*self._python(), CALLER.format(paths=sys.path), program],
            env=self.environ,
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @staticmethod
    def _python() -> list[str]:
        return [sys.executable, "-IS", "-c"]

    @staticmethod
    def _paths() -> str:
        return f"import sys\nsys.path[:] = {sys.path!r}\n"


def _listens(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(address)
        except ConnectionRefusedError:
            return False
    return True


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    there = Place(tmp_path)
    try:
        yield there
    finally:
        for server in there.servers:
            server.kill()
            server.wait()


def test_an_order_is_read_as_it_was_written() -> None:
    """Words with blanks, bytes that are no text, variables with more than one equals sign."""
    order = Order(b"uid 1\nlimits", 0o027, ["condor_q", "", "a b", "\udcff"], {b"A": b"1=2", b"B": b""})
    assert order == Order.read(order.written())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"context",
        b"context\x00x\x001\0w",
        b"context\x00022\x002\0w",
        b"context\x00022\x000",
        b"c\x00777777\x001\0w",
        b"context\x0022\x001\0w\0NO_VALUE",
    ],
)
def test_what_is_no_order_is_refused(data: bytes) -> None:
    """Whatever comes over the socket, the server goes on."""
    with pytest.raises(MalformedOrderError):
        Order.read(data)


def test_a_command_is_forked_with_all_that_its_caller_has(place: Place) -> None:
    """
    Streams, status, words, variables, directory and mask are the caller's; its modules are the server's.
    """
    place.serve("json")
    assert ["began", "by itself"] == place.ask("", KETTLE_FAULTS="1"), (
        "what is read at start is not for one that has started"
    )
    assert ["began", "typed", "3"] == place.ask("print(sys.stdin.read()); sys.exit(3)", b"typed")
    assert ["began", str(place.directory), "0"] == place.ask("print(os.getcwd())")
    assert ["began", "1", "0"] == place.ask("print(os.environ['A'])", A="1")
    assert ["began", "True", "0"] == place.ask("print('json' in sys.modules)")
    mask = os.umask(0o077)
    os.umask(mask)
    assert ["began", str(mask), "0"] == place.ask("print(os.umask(0))")
    assert ["began", "70"] != place.ask("os.kill(os.getpid(), 9)"), "a caller ends as its command did"


@pytest.mark.skipif(not Path("/usr/bin/nice").exists(), reason="coreutils is not installed")
def test_one_with_other_limits_is_not_of_the_context(place: Place) -> None:
    """Nobody gets more, or less, than what he was started with."""
    place.serve()
    assert ["began", "0"] == place.ask("")
    assert ["began", "by itself"] == place.ask("", before=["nice", "-n", "1"])
    assert ["began", "by itself"] == place.ask("", before=["sh", "-c", 'ulimit -n 100 && exec "$@"', "sh"])


def test_a_server_whose_program_has_changed_is_over(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that finds it carries itself out, and the next one may start another server."""
    module = tmp_path / "changing.py"
    module.write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    server = place.serve("changing")
    assert ["began", "0"] == place.ask("")
    os.utime(module, ns=(1, 1))
    assert ["began", "by itself"] == place.ask("")
    assert 0 == server.wait()


def test_a_server_ends_when_nobody_asks(place: Place) -> None:
    """It leaves no socket."""
    server = place.serve(idle_s=0.05)
    assert 0 == server.wait()
    assert [] == list((place.directory / "kettle").iterdir())


def test_who_waits_hears_that_the_server_was_killed(place: Place) -> None:
    """The command goes on to its end, but its exit status was to be told by the server."""
    server = place.serve()
    caller = place.asking("print('runs', flush=True); sys.stdin.readline(); print('done')")
    assert caller.stdin is not None
    assert caller.stdout is not None
    with caller, caller.stdin, caller.stdout:
        assert [b"began\n", b"runs\n"] == [caller.stdout.readline() for _ in range(2)]
        server.kill()
        server.wait()
        caller.stdin.close()
        lost = b"command: the process that carried it out was ended; look whether it was done\n"
        assert [b"done\n", lost, b"70\n"] == caller.stdout.readlines()


def test_an_order_that_was_not_read_is_carried_out_by_who_gave_it(place: Place) -> None:
    """
    A server that ends while an order comes has done nothing with it, and nobody is told that something may have been done.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place.address())
        listener.listen()
        with place.asking("") as caller:
            connection, _ = listener.accept()
            with connection:
                assert select.select([connection], [], [])
            assert caller.stdout is not None
            assert [b"began\n", b"by itself\n"] == caller.stdout.readlines()


@pytest.mark.parametrize("lacking", ["processes", "descriptors"])
def test_a_server_that_can_fork_nothing_hands_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    """It goes on, with the commands that run: their ends are told by nobody else."""

    def refuse() -> int:
        raise BlockingIOError

    def none_left(_which: int) -> tuple[int, int]:
        return 0, 0

    if lacking == "processes":
        monkeypatch.setattr(os, "fork", refuse)
    else:
        monkeypatch.setattr(resource, "getrlimit", none_left)
    address, null = str(tmp_path / "server"), os.open(os.devnull, os.O_RDWR)
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller,
    ):
        listener.bind(address)
        listener.listen()
        caller.connect(address)
        socket.send_fds(caller, [Order(b"", 0o22, ["true"], {}).written()], [null] * 4)
        assert Forks(listener, lambda _order: True).serve(idle_s=0.01) is None
        assert asking.HAND_BACK == caller.recv(16)
    os.close(null)


@pytest.mark.parametrize("stream", ["0<&-", "1>&-", "2>&-"])
def test_one_with_a_closed_stream_carries_itself_out(place: Place, stream: str) -> None:
    """What it opens has the number of the stream, and is nothing that a command may be given."""
    server = place.serve()
    place.ask("print('forked', file=open('said', 'w'))", before=["sh", "-c", f'exec "$@" {stream}', "sh"])
    assert not (place.directory / "said").exists()
    assert server.poll() is None


def test_a_command_ends_with_who_waits_for_it(place: Place) -> None:
    """With what it has started, as a process that is killed with its group."""
    place.serve()
    caller = place.asking("import time; os.fork(); print(os.getpid(), flush=True); time.sleep(600)")
    assert caller.stdout is not None
    with caller, caller.stdout:
        ends = select.poll()
        for line in [caller.stdout.readline() for _ in range(3)][1:]:
            ends.register(os.pidfd_open(int(line)), select.POLLIN)
        caller.kill()
    seen = 0
    while seen < 2:
        for handle, _ in ends.poll():
            ends.unregister(handle)
            os.close(handle)
            seen += 1


def test_a_directory_that_others_may_write_has_no_server(place: Place) -> None:
    """Who can put a socket there could be given what commands carry."""
    place.serve()
    (place.directory / "kettle").chmod(0o770)
    assert ["began", "by itself"] == place.ask("")
    (place.directory / "kettle").chmod(0o700)
    assert ["began", "0"] == place.ask("")


@pytest.mark.skipif(not _ROOT, reason="needs root: a second account asks")
def test_another_account_is_not_heard(place: Place) -> None:
    """Not even when it can reach the socket."""
    place.serve()
    (address,) = (place.directory / "kettle").iterdir()
    address.parent.chmod(0o755)
    address.chmod(0o777)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(address.parent)
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stranger:
                stranger.connect(address.name)
                status = 0 if stranger.recv(16) == b"" else 2
        finally:
            os._exit(status)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
