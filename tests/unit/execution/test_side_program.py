"""The beginning of a program beside a job."""

import os
import select
import signal
from collections.abc import Generator

import msgspec
import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.processes.launch import Program
from kettle.execution.processes.side_program import SpawnedProgram, SpawnError, spawn, spawn_beside


@pytest.fixture
def pipes() -> Generator[tuple[int, int]]:
    """(what a program's output can be read from, its streams)."""
    out, stream = os.pipe()
    yield out, stream
    for fd in (out, stream):
        try:
            os.close(fd)
        except OSError:
            continue  # the test has closed it


def program(path: str, *arguments: str, stream: int) -> Program:
    return Program(
        path=path, arguments=arguments, environment={"COLOUR": "green"}, directory="/",
        stdin="", stdout="", stderr="", streams=(stream, stream, stream),
    )  # fmt: skip


def ended(birth: SpawnedProgram) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(birth.pid, 0)[1])


def test_it_is_the_program_with_the_usual_signals(pipes: tuple[int, int]) -> None:
    """
    What we ignore or block is nothing to it, and it has a session, a directory and an environment of its own.
    """
    out, stream = pipes
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        script = "grep -E 'Sig(Ign|Blk)' /proc/self/status; echo $COLOUR; pwd; ps -o sid= -p $$"
        birth = spawn_beside(None, program("/bin/sh", "-c", script, stream=stream))
    finally:
        signal.signal(signal.SIGUSR1, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2})
    birth.finish()
    assert 0 == ended(birth)
    _, blocked, _, ignored, *words = os.read(out, 4096).decode().split()
    internal = 0b11 << 31  # the C library's own two, which every program that it starts ignores
    assert (0, 0) == (int(blocked, 16), int(ignored, 16) & ~internal)
    assert ["green", "/", str(birth.pid)] == words


def test_what_keeps_it_from_beginning_is_told(pipes: tuple[int, int]) -> None:
    """As a sentence with the reason; what is left is a child that has ended."""
    birth = spawn_beside(None, program("/no/such/program", stream=pipes[1]))
    with pytest.raises(SpawnError, match=r"/no/such/program .* No such file"):
        birth.finish()
    assert 1 == ended(birth)


def test_one_that_is_stopped_holds_nobody_up(pipes: tuple[int, int]) -> None:
    """
    A job can stop the process that becomes a program as its account: the starter learns nothing from it, can end it,
    and its other descriptors are not kept open by it.
    """
    reading, writing = os.pipe()
    out, stream = pipes
    birth = spawn(program("/bin/true", stream=stream), None, lambda: os.kill(os.getpid(), signal.SIGSTOP))
    os.waitpid(birth.pid, os.WUNTRACED)
    os.close(writing)
    assert b"" == os.read(reading, 1)
    os.close(reading)
    poll = select.poll()
    poll.register(birth.told, select.POLLIN)
    assert [] == poll.poll(0)
    birth.abandon()
    assert -signal.SIGKILL == ended(birth)
    os.close(stream)
    assert b"" == os.read(out, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_whoever_begins_it_stays_who_he_is(pipes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """
    A process whose real account is the job's can be stopped or killed by the job: only the child ever has it.
    """
    out, stream = pipes
    script = program("/bin/sh", "-c", "id -u; id -ru; id -g", stream=stream)
    became: list[int] = []
    become = os.setresuid

    def noted(real: int, effective: int, saved: int) -> None:
        became.append(real)
        become(real, effective, saved)

    monkeypatch.setattr(os, "setresuid", noted)
    birth = spawn_beside(None, msgspec.structs.replace(script, account=Account(54321, 54322)))
    birth.finish()
    assert 0 == ended(birth)
    assert (["54321", "54321", "54322"], []) == (os.read(out, 4096).decode().split(), became)
