"""
A command server does what an interpreter of its own would have done, for one account and one context, or nothing.
"""

import os
import posix
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.command_server import asking
from kettle.command_server.order import MalformedOrderError, Order
from kettle.command_server.server import ProgramFiles
from kettle.testing.measurements import below
from kettle.testing.patience import PATIENCE_S
from kettle_services.condor.compiled_launcher import compile_into

_ROOT: Final = os.geteuid() == 0
SERVER: Final = """\
import os, sys
from kettle.command_server import asking, server
server.IDLE_S = {idle_s}
assigned = server.serve(asking.socket_path(asking.directory(), asking.context()), "", {modules!r})
{then}"""
ONCE: Final = """\
if assigned is not None:
    exec(assigned.words[-1])
"""
CALLER: Final = """\
import sys
sys.path[:] = {paths!r}
from kettle.command_server import asking
print("began", flush=True)
status = asking.forked(["command", *sys.argv[1:]])
print("by itself" if status is None else status)
"""
COMPILED: Final = """\
#!{program}
# command  {python}
print("by itself")
"""


class Place:
    """A directory of sockets, and what is said and asked there."""

    def __init__(self, directory: Path, program: Path | None = None) -> None:
        """`program`: the compiled launcher that asks."""
        self.directory = directory
        self.script: Path | None = None
        if program is not None:
            self.script = directory / "command"
            self.script.write_text(COMPILED.format(program=program, python=sys.executable))
            self.script.chmod(0o755)
        self.began = [b"began\n"] if program is None else []
        """What a caller says before its command does."""
        self.environ = {**os.environ, "XDG_RUNTIME_DIR": str(directory), asking.VARIABLE: "on"}
        self.before: Sequence[str] = ()
        """Words with which servers are started by another program."""
        self.servers: list[subprocess.Popen[bytes]] = []

    def serve(self, *modules: str, first: str = "", then: str = ONCE) -> subprocess.Popen[bytes]:
        """
        A server for callers of `ask`, which takes orders when this returns; `first`: lines that it runs before it is one, `then`:
        what its processes do.
        """
        server = self.start(*modules, first=first, then=then)
        while not any(map(_listens, self.addresses())):
            assert server.poll() is None
        return server

    def start(
        self, *modules: str, idle_s: float = 60.0, first: str = "", then: str = ONCE
    ) -> subprocess.Popen[bytes]:
        """As `serve`, without a look whether it takes orders yet, or any more."""
        text = f"{first}\n{SERVER.format(modules=modules, idle_s=idle_s, then=then)}"
        with (self.directory / "said").open("ab") as said:
            server = subprocess.Popen(
                [*self.before, *self.python(), self.paths() + text], env=self.environ, stderr=said
            )
        self.servers.append(server)
        return server

    def said(self) -> str:
        """What the servers have complained about."""
        return (self.directory / "said").read_text()

    def addresses(self) -> list[Path]:
        """Of all servers that are, or were, here."""
        return list((self.directory / "kettle").glob("commands-*"))

    def ask(
        self, program: str, typed: bytes = b"", before: Sequence[str] = (), **variables: str
    ) -> list[str]:
        """The lines that a caller and its command print, and then the status of the command."""
        done = subprocess.run(
            [*before, *self.caller(), program],
            input=typed,
            env=self.environ | variables,
            cwd=self.directory,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        lines = done.stdout.decode().splitlines()
        if self.script is None:
            return lines
        return ["began", *lines, *([] if lines[-1:] == ["by itself"] else [str(done.returncode)])]

    def caller(self) -> list[str]:
        """The words that ask for a command, without its own."""
        return [*self.python(), CALLER.format(paths=sys.path)] if self.script is None else [str(self.script)]

    def asking(self, program: str) -> "subprocess.Popen[bytes]":
        """One that asks, and is not waited for."""
        return subprocess.Popen(
            [*self.caller(), program],
            env=self.environ,
            cwd=self.directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    @staticmethod
    def python() -> list[str]:
        """An interpreter as launchers have it."""
        return [sys.executable, "-IS", "-c"]

    @staticmethod
    def paths() -> str:
        """Where its modules are, as the first lines of what it runs."""
        return f"import sys\nsys.path[:] = {sys.path!r}\n"


def _listens(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
        try:
            probe.connect(str(address))
        except ConnectionRefusedError:
            return False
    return True


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The compiled launcher; None: there is no compiler here."""
    return compile_into(tmp_path_factory.mktemp("launch"))


@pytest.fixture(params=["interpreted", "compiled"])
def place(tmp_path: Path, request: pytest.FixtureRequest, launch: Path | None) -> Iterator[Place]:
    """With callers of either kind."""
    if request.param == "compiled" and launch is None:
        pytest.skip("no C compiler is installed")
    there = Place(tmp_path, launch if request.param == "compiled" else None)
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
    assert order == Order.read(order.written() + b"\0A=3"), "of two variables of one name the first counts"


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
    before = module.stat()
    another = tmp_path / "another.py"
    another.write_text("")
    os.utime(another, ns=(before.st_atime_ns, before.st_mtime_ns))  # as an archive of a release may say
    another.replace(module)
    assert ["began", "by itself"] == place.ask("")
    assert 0 == server.wait()


def test_a_file_that_is_written_over_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory has not, so it takes a moment until that is noticed."""
    monkeypatch.setattr("kettle.command_server.server.FILES_S", 0.0)
    module = tmp_path / "module.py"
    module.write_text("")
    program = ProgramFiles([str(module)])
    assert not program.have_changed()
    with module.open("a") as file:
        file.write("changed = True\n")
    assert program.have_changed()


FORGED: Final = """\
import sys
sys.path[:] = {paths!r}
from kettle.command_server import asking
asking.context = lambda _installation: bytes.fromhex({context!r})
status = asking.forked(["command", "print('carried out')"])
print("by itself" if status is None else status)
"""
"""A caller that says of itself what is true of another process."""
CONTEXT: Final = "from kettle.command_server import asking; print(asking.context().hex(), end='')"


def test_what_a_confined_process_says_of_itself_gives_it_no_rights(place: Place) -> None:
    """The server looks itself who asks: one of the same account that may do less is not served."""
    place.serve()
    said = subprocess.run(
        [*place.python(), place.paths() + CONTEXT], env=place.environ, check=True, stdout=subprocess.PIPE
    ).stdout.decode()
    forged = [*place.python(), FORGED.format(paths=sys.path, context=said)]

    def asked(*before: str) -> str:
        return subprocess.run(
            [*before, *forged], env=place.environ, check=True, stdout=subprocess.PIPE
        ).stdout.decode()

    assert asked() == "carried out\n0\n"
    assert asked("sh", "-c", 'ulimit -n 100 && exec "$@"', "sh") == "by itself\n"


def test_nothing_takes_the_place_of_the_directory_while_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    As with `sudo -E`, what is above it may be of somebody else, who exchanges it when it has been looked at.
    """
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", os.fsencode(tmp_path))
    where = asking.directory()
    try:
        (tmp_path / "kettle").rename(tmp_path / "looked at")
        (tmp_path / "kettle").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(asking.socket_path(where, b"context"))
        assert [] == list((tmp_path / "kettle").iterdir())
        assert 1 == len(list((tmp_path / "looked at").iterdir()))
    finally:
        os.close(where)
    (tmp_path / "kettle").rmdir()
    (tmp_path / "kettle").symlink_to(tmp_path / "looked at")
    with pytest.raises(OSError, match="Not a directory"):
        asking.directory()


def test_more_callers_than_descriptors_end_no_server(place: Place) -> None:
    """Whom it cannot take it sends back, and the commands that run do not lose it."""
    limit = ["sh", "-c", 'ulimit -n 48 && exec "$@"', "sh"]
    place.before = limit
    place.serve()
    (address,) = place.addresses()
    with ExitStack() as crowd:
        handed_back = 0
        for _ in range(100):
            one = crowd.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            one.connect(str(address))
            one.settimeout(0)
            with suppress(BlockingIOError):
                handed_back += one.recv(16) == asking.HAND_BACK
        assert ["began", "by itself"] == place.ask("", before=limit)
    assert ["began", "0"] == place.ask("", before=limit)


def test_a_server_without_descriptors_hears_its_callers_later(place: Place) -> None:
    """Nobody is lost: who asks meanwhile waits."""
    server = place.serve()
    (address,) = place.addresses()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    # None but its standard streams, which are open: how many others are, changes when it hears that `serve` has looked.
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (3, most[1]))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.connect(str(address))
        one.send(b"no order")
        while "nobody is heard for a moment: [Errno 24]" not in place.said():
            assert server.poll() is None
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, most)
        assert asking.HAND_BACK == one.recv(16)
    assert ["began", "0"] == place.ask("")


def test_a_process_whose_end_cannot_be_watched_is_no_command(place: Place) -> None:
    """It is ended before it is one, and its caller carries the command out; the next one is carried out again."""
    full = place.directory / "full"
    full.touch()
    place.serve(
        first=f"""\
import os
watch = os.pidfd_open
def unless_full(pid):
    if os.path.exists({str(full)!r}):
        raise OSError(23, "Too many open files in system")
    return watch(pid)
os.pidfd_open = unless_full
"""
    )
    assert ["began", "by itself"] == place.ask("")
    full.unlink()
    assert ["began", "0"] == place.ask("")


REPEATING: Final = """\
if assigned is not None:
    words = assigned.words
    while words is not None:
        status = 0
        exec(words[-1])
        words = assigned.next(status)
    sys.stdout.flush()
    os._exit(status)
"""
"""A server whose processes carry out commands one after the other; a command sets `status`."""


def test_callers_with_the_same_variables_share_a_process(place: Place) -> None:
    """One after the other; what each is given is its own, and nothing of the one before is there."""
    place.serve(then=REPEATING)
    whose = "print(os.getpid(), sys.stdin.readline(), os.environ.get('A'), os.getcwd())"

    def asked(typed: str, **variables: str) -> list[str]:
        [began, *said, status] = place.ask(whose, typed.encode(), **variables)
        assert ("began", "0") == (began, status)
        return " ".join(said).split()

    first = asked("one\nmore of one\n")
    assert [first[0], "two", "None", str(place.directory)] == asked("two\n")
    assert first[0] != asked("three\n", A="1")[0], "another caller's variables"
    assert first[0] == asked("four\n")[0]
    said = place.ask("os.environ['A'] = '2'; os.chdir('/'); os.umask(0); print(os.getpid())")
    assert ["began", first[0], "0"] == said
    assert [first[0], "five", "None", str(place.directory)] == asked("five\n")
    mask = os.umask(0o077)
    os.umask(mask)
    assert ["began", f"{first[0]} {mask}", "0"] == place.ask("print(os.getpid(), os.umask(0))")


@pytest.mark.parametrize(
    "leaves",
    [
        pytest.param("status = 1", id="a failure"),
        pytest.param("os.open('/dev/null', 0)", id="an open file"),
        pytest.param("os.posix_spawn('/bin/true', ['true'], {})", id="a process"),
        pytest.param("import threading", id="what may have threads"),
        pytest.param("sys.exit(0)", id="an end of its own"),
    ],
)
def test_a_process_that_leaves_something_is_not_used_again(place: Place, leaves: str) -> None:
    """The next command has another one, and each is told how its own has ended."""
    place.serve(then=REPEATING)
    [_, first, status] = place.ask(f"print(os.getpid()); {leaves}")
    assert ("1" if leaves == "status = 1" else "0") == status
    [_, second, status] = place.ask("print(os.getpid())")
    assert "0" == status
    assert first != second
    assert ["began", second, "0"] == place.ask("print(os.getpid())")


def test_what_a_command_has_written_is_all_there_when_its_caller_ends(place: Place) -> None:
    """Its process lives on, and has none of its streams."""
    place.serve(then=REPEATING)
    for _ in range(3):
        assert ["began", "x" * 200_000, "0"] == place.ask("print('x' * 200_000)")


def test_a_command_in_a_process_that_is_used_again_ends_with_its_caller(place: Place) -> None:
    """And the next one has another process."""
    place.serve(then=REPEATING)
    [_, first, _] = place.ask("print(os.getpid())")
    caller = place.asking("import time; print(os.getpid(), flush=True); time.sleep(600)")
    assert caller.stdout is not None
    with caller, caller.stdout:
        [*_, line] = [caller.stdout.readline() for _ in (*place.began, 1)]
        assert first == line.decode().strip()
        handle = os.pidfd_open(int(line))
        caller.kill()
    try:
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        assert ended.poll(PATIENCE_S * 1000)
    finally:
        os.close(handle)
    [_, second, status] = place.ask("print(os.getpid())")
    assert ("0", True) == (status, first != second)


def test_what_waits_to_be_a_command_ends_with_its_server(place: Place) -> None:
    """One process is forked before it is asked for: the next command has it, and nobody keeps it."""
    server = place.serve()
    while not (waiting := below(server.pid)):
        assert server.poll() is None
    assert ["began", str(*waiting), "0"] == place.ask("print(os.getpid())")
    [another] = below(server.pid)
    handle = os.pidfd_open(another)
    try:
        server.kill()
        server.wait()
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        assert ended.poll(PATIENCE_S * 1000)
    finally:
        os.close(handle)


def test_one_that_was_killed_while_it_waited_is_no_command(place: Place) -> None:
    """Its order goes to another process."""
    server = place.serve()
    while not (waiting := below(server.pid)):
        assert server.poll() is None
    [pid] = waiting
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        ended = select.poll()
        ended.register(handle, select.POLLIN)
        assert ended.poll(PATIENCE_S * 1000)
    finally:
        os.close(handle)
    assert ["began", "done", "0"] == place.ask("print('done')")
    assert ["began", "done", "0"] == place.ask("print('done')")


def test_a_label_that_ends_with_a_zero_byte_is_part_of_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of SELinux do: zero bytes separate the parts of an order."""
    read = asking._read  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(
        asking, "_read", lambda path: b"system_u:object\0" if path.endswith("attr/current") else read(path)
    )
    order = Order(asking.context(), 0o22, ["command"], {})
    assert b"system_u:object" in order.context
    assert order == Order.read(order.written())


def test_what_outlives_its_terminal_is_not_of_the_context_of_what_does_not(place: Place) -> None:
    """Signals that a command ignores from its start are part of what it has from its parent."""
    place.serve()
    assert ["began", "0"] == place.ask("")
    assert ["began", "by itself"] == place.ask("", before=["sh", "-c", 'trap "" USR2; exec "$@"', "sh"])


def test_a_server_that_was_started_to_ignore_its_children_tells_how_they_end(place: Place) -> None:
    """And its commands ignore theirs, as those who were executed by the same parent do."""
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    place.before = [sys.executable, "-IS", "-c", ignore]
    place.serve()
    asks = "import signal; sys.exit(3 + (signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN))"
    assert ["began", "4"] == place.ask(asks, before=place.before)
    assert ["began", "4"] == place.ask(asks, before=place.before)
    assert "" == place.said()


def test_a_caller_whose_stream_is_closed_carries_itself_out(place: Place) -> None:
    """Its connection would have the number of the stream, and be given to the command as that."""
    place.serve()
    assert ["began", "by itself"] == place.ask("", before=["sh", "-c", 'exec "$@" <&-', "sh"])


def test_a_directory_that_cannot_be_entered_any_more_is_the_callers(place: Place) -> None:
    """A process may be where it may not go, and a file is given in the place of its directory by nobody."""
    place.serve()
    (address,) = place.addresses()
    with (place.directory / "file").open("w") as file, Path(os.devnull).open("r+b") as null:
        context = subprocess.run(
            [*place.python(), place.paths() + CONTEXT], env=place.environ, check=True, stdout=subprocess.PIPE
        ).stdout.decode()
        order = Order(bytes.fromhex(context), 0o22, ["command", "print('carried out')"], {})
        caller = [
            *place.python(),
            place.paths() + ORDERED.format(address=str(address), order=order.written()),
        ]
        numbers = [null.fileno(), file.fileno()]
        said = subprocess.run(
            [*caller, *map(str, numbers)],
            env=place.environ,
            pass_fds=numbers,
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
    assert asking.HAND_BACK == said


ORDERED: Final = """\
import socket
null, here = map(int, sys.argv[1:])
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as ask:
    ask.connect({address!r})
    socket.send_fds(ask, [{order!r}], [null, null, null, here])
    sys.stdout.buffer.write(ask.recv(16))
"""


def test_an_order_that_was_not_read_is_carried_out_by_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that ends at that moment has done nothing, and its caller is told so."""
    monkeypatch.setitem(posix.environ, b"XDG_RUNTIME_DIR", os.fsencode(tmp_path))
    monkeypatch.setitem(posix.environ, asking.VARIABLE.encode(), b"on")
    monkeypatch.setattr(asking, "_JOBS", ())
    where = asking.directory()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(asking.socket_path(where, asking.context()))
        listener.listen()
        os.close(where)
        ordered = asking._ordered  # pyright: ignore[reportPrivateUsage]

        callers: list[socket.socket] = []

        def then_over(caller: socket.socket, *order: Any) -> bool:
            callers.append(caller)
            done = ordered(caller, *order)
            listener.close()
            return done

        monkeypatch.setattr(asking, "_ordered", then_over)
        assert asking.forked(["command"]) is None
        for caller in callers:
            caller.close()


def test_a_server_ends_when_nobody_asks(place: Place) -> None:
    """It leaves no socket."""
    server = place.start(idle_s=0.05)
    assert 0 == server.wait()
    assert [] == list((place.directory / "kettle").iterdir())


def test_who_waits_hears_that_the_server_was_killed(place: Place) -> None:
    """The command goes on to its end, but its exit status was to be told by the server."""
    server = place.serve()
    caller = place.asking("print('runs', flush=True); sys.stdin.readline(); print('done')")
    assert caller.stdin is not None
    assert caller.stdout is not None
    with caller, caller.stdin, caller.stdout:
        assert [*place.began, b"runs\n"] == [caller.stdout.readline() for _ in (*place.began, "runs")]
        server.kill()
        server.wait()
        caller.stdin.close()
        lost = b"command: the process that carried it out was ended; look whether it was done\n"
        assert [b"done\n", lost, *([b"70\n"] if place.began else [])] == caller.stdout.readlines()
    assert (0 if place.began else 70) == caller.wait()


def test_a_command_ends_with_who_waits_for_it(place: Place) -> None:
    """With what it has started, as a process that is killed with its group."""
    place.serve()
    caller = place.asking("import time; os.fork(); print(os.getpid(), flush=True); time.sleep(600)")
    assert caller.stdout is not None
    with caller, caller.stdout:
        ends = select.poll()
        for line in [caller.stdout.readline() for _ in (*place.began, 1, 2)][-2:]:
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
    (address,) = place.addresses()
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
