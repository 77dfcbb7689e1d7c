"""
The proxy between a job's programs and their submit side: what a program does not wait for or take costs a bounded lot.
"""

import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import ChirpPolicy, JobSpec
from kettle.execution.attempts.messages import Question, Reply
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle_services.starter.chirp.connection import Connection
from kettle_services.starter.chirp.conversation import Delayed
from kettle_services.starter.chirp.server import CONFIG, Proxy
from kettle_services.starter.chirp.waits import Asked
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.commands.chirp import PIECE, Chirped, CloseFile, OpenFile
from kettle_wire.commands.questions import OnNode
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId

POLICY = ChirpPolicy(files=True, updates=True, nodes=True)
ABANDONED = 40
LONG = PIECE // 8


class Programs:
    """A proxy, and the programs of its job."""

    def __init__(self, sandbox: Path) -> None:
        self.wished: list[Question] = []
        spec = JobSpec(
            key=ClaimKey("claim", "secret"), job=JobId(1, 0), attempt=1, schedd="schedd", execute=str(sandbox.parent),
            state=str(sandbox), slot="slot1", cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0,
            began=0.0, deadline=0.0, sequence=0, chirp=POLICY,
        )  # fmt: skip
        self.proxy = Proxy(
            spec,
            JobAd({"WantIOProxy": True, "Node": 0}),
            SubmitSideQuestions("shadow", self.wished.append).ask,
        )
        self.proxy.furnish(Sandbox(str(sandbox)), contained=False)
        self._host, port, self._cookie = (sandbox / CONFIG).read_text().split()
        self._port = int(port)

    def call(self, said: str) -> socket.socket:
        """Connect, and say something."""
        sock = socket.create_connection((self._host, self._port))
        sock.sendall(f"cookie {self._cookie}\n{said}".encode())
        self.go_on()
        return sock

    def go_on(self) -> None:
        """Have the proxy do what is to be done."""
        while True:
            poll = select.poll()
            self.proxy.register(poll)
            ready = {fd for fd, _ in poll.poll(50)}
            if not ready:
                return
            self.proxy.go_on(ready)


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    (tmp_path / "sandbox").mkdir()
    programs = Programs(tmp_path / "sandbox")
    yield programs
    programs.proxy.close()


@pytest.mark.slow
def test_questions_that_nobody_waits_for_count_as_connections(programs: Programs) -> None:
    """A program that asks and goes away, again and again, has a bounded number of questions in hand."""
    for _ in range(ABANDONED):
        with suppress(ConnectionError):  # it is one too many
            programs.call("stat x\n").close()
        programs.go_on()

    assert 16 == len(programs.wished)
    programs.proxy.hear(Reply(programs.wished[0].number, Chirped()))
    programs.call("stat y\n").close()
    assert 17 == len(programs.wished)


def test_a_file_that_nobody_waits_for_is_closed(programs: Programs) -> None:
    """Whose connection went away before the file was open cannot close it."""
    programs.call("open x r 0\n").close()
    programs.go_on()
    (asked,) = programs.wished
    assert isinstance(asked.asks, OpenFile)

    programs.proxy.hear(Reply(asked.number, Chirped(7, b"1 2 3 4 5 6 7 5 9 10 11 12 13\n")))

    assert [CloseFile(7)] == [each.asks for each in programs.wished[1:]]


def test_a_program_on_another_node_ends_with_who_had_it_started(programs: Programs) -> None:
    """The connection ends while nothing is said on it: the program's session is closed, once."""
    sock = programs.call("kettle_node 1 4\ndate")
    (asked,) = programs.wished
    assert isinstance(asked.asks, OnNode)
    sock.close()
    programs.go_on()
    (_, closed) = programs.wished
    assert OnNode(node=1, session=asked.asks.session, verb="close_session") == closed.asks


def test_who_takes_no_answers_is_asked_for_no_questions() -> None:
    """
    What is kept for a program that does not read stays within its bound, and all of it arrives when it does.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    asked: list[Asked] = []
    talk = Connection(ours, "c", POLICY, Delayed(JobAd({}), ()), lambda _, wish: asked.append(wish))
    questions = b"cookie c\n" + b"whoami x\nget_job_attr A\n" * 100_000
    said = answered = 0
    while True:
        before = len(asked), said
        with suppress(BlockingIOError):
            said += theirs.send(questions[said : said + 65536])
        if talk.events:
            talk.go_on()
        while answered < len(asked):
            answered = len(asked)
            talk.answered(Chirped(LONG, b"x" * LONG))
        if (len(asked), said) == before:
            break

    assert 0 < len(asked) * LONG < 8 * PIECE
    assert not talk.events & select.POLLIN
    stopped, got = len(asked), 0
    while stopped == len(asked):
        got += len(theirs.recv(1 << 20))
        talk.go_on()
    assert got > 0
    talk.close()
    theirs.close()
