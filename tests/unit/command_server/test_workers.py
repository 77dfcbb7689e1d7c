"""Processes that wait to be commands, and carry out one after the other: nothing of one is the next one's."""

import os
import select
import signal
from typing import Final

import pytest

from kettle.testing.measurements import below
from kettle.testing.patience import PATIENCE_S

from .place import Place

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
