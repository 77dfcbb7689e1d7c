"""What a starter does with the questions of people who look into its job."""

import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests.unit.own_process import alone, bystander

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import AccessReply, AccessRequest, Renew, frame
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import SpawnedProgram, spawn, spawn_beside
from kettle.execution.sandbox.directory import Sandbox
from kettle.testing.patience import PATIENCE_S
from kettle_services.starter.execution.process_tree import ProcessTree, empty_process_tree
from kettle_services.starter.job_access import sessions
from kettle_services.starter.job_access.request_queue import AccessRequestQueue
from kettle_services.starter.job_access.sessions import Sessions
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_wire.ads import Scalar
from kettle_wire.commands.access import (
    LONGEST_LOOK,
    OPEN_SESSION,
    PEEK,
    Access,
    Exchange,
    Exchanged,
    FilePlace,
    Opened,
    OpenSession,
    Peek,
    Terminal,
)
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


@pytest.fixture(autouse=True)
def others() -> Generator[None]:
    """Processes of other tests, which go on."""
    with bystander():
        yield


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that begins late, because the machine has much else to do, is none that cannot begin."""
    monkeypatch.setattr(sessions, "_BIRTH_S", PATIENCE_S)


ACCESS = Access(claim="c", job=JobId(1, 0), attempt=1, proof="p")
encode = msgspec.msgpack.encode


class FakeMasterCommands:
    """The reception of a job with this sandbox, and what it has answered."""

    def __init__(self, tmp_path: Path, **attributes: Scalar) -> None:
        spec = JobSpec(
            key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="s", execute=str(tmp_path), state="/s",
            slot="slot1", cpus=1, memory=1, disk=1, ad={"Cmd": "/bin/true", **attributes}, machine_ad="", inputs=[], received=0,
            began=0, deadline=0, sequence=0,
        )  # fmt: skip
        self.answers: list[AccessReply] = []
        self.access_requests = AccessRequestQueue(
            spec, JobAd(spec.ad), Sandbox(str(tmp_path)), None, self.answers.append
        )

    def ask(self, verb: str, body: bytes, *, still: bool = False) -> AccessReply:
        self.access_requests.enqueue(AccessRequest(1, verb, body))
        tree = ProcessTree(os.getpid(), None)
        self.access_requests.answer(tree, None, still=still)
        return self.answers.pop()


def test_what_goes_wrong_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The caller gets an error: a starter whose modules are missing, or that gets an unknown request, continues.
    """
    monkeypatch.setitem(sys.modules, "kettle_services.starter.job_access.requests", None)
    assert "ModuleNotFoundError" in FakeMasterCommands(tmp_path).ask(PEEK.verb, b"").reason
    monkeypatch.undo()
    master_commands = FakeMasterCommands(tmp_path)
    unknown = encode({"access": ACCESS, "files": [], "colour": "green"})
    assert "colour" in master_commands.ask(PEEK.verb, unknown).reason
    assert "dance" in master_commands.ask("dance", b"").reason


def test_trouble_with_sessions_ends_them_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job goes on, and so does the looking at its files."""
    master_commands = FakeMasterCommands(tmp_path)
    peek = encode(Peek(access=ACCESS, files=[]))
    master_commands.ask(PEEK.verb, peek)

    def broken(_self: Sessions, _ready: set[int]) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Sessions, "go_on", broken)
    master_commands.access_requests.go_on(set())
    assert "" == master_commands.ask(PEEK.verb, peek).code


def test_one_question_has_its_turn(tmp_path: Path) -> None:
    """Between two of them the starter hears its orders; it does not sleep while there is one more."""
    master_commands = FakeMasterCommands(tmp_path)
    assert float("inf") == master_commands.access_requests.due
    for number in (1, 2):
        master_commands.access_requests.enqueue(AccessRequest(number, "dance", b""))
    seen: list[tuple[int, float]] = []
    for _ in range(3):
        master_commands.access_requests.answer(None, None, still=False)
        seen.append((len(master_commands.answers), master_commands.access_requests.due))
    assert [(1, 0.0), (2, float("inf")), (2, float("inf"))] == seen


def test_many_files_are_no_more_than_one(tmp_path: Path) -> None:
    """An answer has a size that does not depend on how many files were asked for."""
    (tmp_path / "large").write_bytes(bytes(LONGEST_LOOK))
    places = [FilePlace(name="large", length=length) for length in (100, LONGEST_LOOK, LONGEST_LOOK)]
    answer = FakeMasterCommands(tmp_path).ask(PEEK.verb, encode(Peek(access=ACCESS, files=places)))
    pieces = PEEK.decode_reply(answer.body).files
    assert [100, LONGEST_LOOK - 100, 0] == [len(piece.data) for piece in pieces]
    assert [LONGEST_LOOK] * 3 == [piece.size for piece in pieces]


def test_a_stream_in_proc_is_none(tmp_path: Path) -> None:
    """A job that names its own output may name files that tell of its starter, not of itself."""
    (tmp_path / "out").write_bytes(b"said")
    for name, found in (("out", b"said"), ("/proc/self/environ", b"")):
        master_commands = FakeMasterCommands(tmp_path, Iwd=str(tmp_path), Out=name, ShouldTransferFiles="NO")
        answer = master_commands.ask(
            PEEK.verb, encode(Peek(access=ACCESS, files=[FilePlace(name="_condor_stdout")]))
        )
        (piece,) = PEEK.decode_reply(answer.body).files
        assert (found, not found) == (piece.data, "/proc" in piece.trouble)


def test_nothing_begins_beside_a_suspended_job(tmp_path: Path) -> None:
    """It would be frozen in the job's group before it had begun."""
    request = OpenSession(access=ACCESS, session="s", command=["true"])
    answer = FakeMasterCommands(tmp_path).ask(OPEN_SESSION.verb, encode(request), still=True)
    assert ("refused", True) == (answer.code, "suspended" in answer.reason)


def test_a_word_that_is_not_known_is_passed_over() -> None:
    """A later startd may say more than a starter knows; what it knows is heard."""
    ours, theirs = socket.socketpair()
    body = encode({"type": "dance"})
    theirs.sendall(struct.pack("!I", len(body)) + body + frame(Renew(5.0)))
    assert [Renew(5.0)] == list(StartdConnection(ours).receive())
    ours.close()
    theirs.close()


# -- sessions --------------------------------------------------------------------------------------------------------


class Talk:
    """Sessions, and what they have answered."""

    def __init__(self) -> None:
        self.replies: list[Exchanged | Opened] = []
        self.refusals: list[str] = []
        self.sessions = Sessions(
            lambda _number, reply: self.replies.append(reply),
            lambda _number, reason: self.refusals.append(reason),
        )
        self.tree = empty_process_tree(None)

    def open(
        self, script: str, start: Callable[[Program], SpawnedProgram] | None = None, *, tty: bool = False
    ) -> None:
        terminal = Terminal() if tty else None
        request = OpenSession(access=ACCESS, session="s", command=["x"], terminal=terminal)
        program = Program(
            path="/bin/sh",
            arguments=["-c", script],
            environment={},
            directory="/",
            stdin="",
            stdout="",
            stderr="",
        )
        assert None is self.sessions.open(
            1, request, program, self.tree, start or partial(spawn_beside, None)
        )

    def until(self, true: Callable[[], bool]) -> None:
        while not true():
            poll = select.poll()
            self.sessions.register(poll)
            self.sessions.go_on({fd for fd, _ in poll.poll(1000)})

    def opened(self) -> int:
        self.until(lambda: bool(self.replies))
        reply = self.replies.pop()
        assert isinstance(reply, Opened)
        return reply.pid

    def output(self) -> bytes:
        """All that the program writes."""
        found, after = b"", 0
        while True:
            request = Exchange(access=ACCESS, session="s", after=after, wait=5.0)
            reply = self.sessions.exchange(2, request)
            if reply is None:
                self.until(lambda: bool(self.replies))
                answer = self.replies.pop()
                assert isinstance(answer, Exchanged)
                reply = answer
            found += b"".join(output.data for output in reply.output)
            after = reply.number
            if reply.over:
                return found


@alone
def test_a_program_that_cannot_begin_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the job keeps from beginning is ended when its time is over, and nobody has waited for it."""
    monkeypatch.setattr(sessions, "_BIRTH_S", 0.0)
    talk = Talk()

    def stopped(program: Program) -> SpawnedProgram:
        return spawn(program, None, lambda: os.kill(os.getpid(), signal.SIGSTOP))

    talk.open("true", stopped)
    pid = talk.sessions.known("s")
    assert pid is not None
    os.waitpid(pid.pid, os.WUNTRACED)
    talk.sessions.go_on(set())
    assert ([True], None) == (["in time" in why for why in talk.refusals], talk.sessions.known("s"))
    talk.tree.kill_all()


@alone
def test_a_program_that_is_not_there_is_refused() -> None:
    """With the reason; and its place is free."""
    talk = Talk()

    def absent(program: Program) -> SpawnedProgram:
        return spawn_beside(None, msgspec.structs.replace(program, path="/no/such"))

    talk.open("true", absent)
    talk.until(lambda: bool(talk.refusals))
    assert ([True], None) == (["No such file" in why for why in talk.refusals], talk.sessions.known("s"))
    talk.tree.kill_all()


@alone
def test_without_descriptors_nothing_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cannot be watched is ended at once."""

    def full(_pid: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", full)
    talk = Talk()
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match="Too many"):
        talk.open("exec sleep 1000")
    assert -signal.SIGKILL == os.waitstatus_to_exitcode(os.wait()[1])
    assert (before, None) == (set(Path("/proc/self/fd").iterdir()), talk.sessions.known("s"))


@alone
def test_an_end_of_input_that_is_said_again_is_one() -> None:
    """On a terminal the end is a character: the next reader must not find a second one."""
    talk = Talk()
    talk.open("cat; read word && echo got $word", tty=True)
    talk.opened()
    for _ in range(2):
        talk.sessions.exchange(2, Exchange(access=ACCESS, session="s", ends=True))
    talk.sessions.exchange(2, Exchange(access=ACCESS, session="s", data=b"hello\n"))
    assert b"got hello" in talk.output()


@alone
def test_the_end_of_all_sessions() -> None:
    """
    Their programs are gone, and they are forgotten: their family may have a successor, with other processes.
    """
    talk = Talk()
    talk.open("sleep 1000 & exec sleep 1000")
    talk.opened()
    talk.sessions.end()
    assert (None, float("inf")) == (talk.sessions.known("s"), talk.sessions.due)
    talk.tree.kill_all()
