"""How a lane runs tasks; it is a program that stands alone."""

import os
import pickle
import select
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kettle.task_queues.kettle_task_lane import Commands, Functions, Lines
from kettle.task_queues.kettle_task_worker import Done, Lane


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Commands]:
    def keep(_number: int, _handler: object) -> None:
        """The test's own process is no lane."""

    monkeypatch.setattr("signal.signal", keep)
    monkeypatch.setattr("kettle.task_queues.kettle_task_lane.adopts_orphans", lambda: False)
    monkeypatch.chdir(tmp_path)
    lane = Commands({"wall": 0.0, "output": 10})
    yield lane
    lane.file.close()
    os.close(lane.nothing)


@pytest.mark.parametrize(
    ("line", "shell"),
    [
        ("true", False),
        ("sleep 0.1 --x=y a/b,c:d@e+f%g", False),
        ("echo a", True),
        ("A=1 true", True),
        ("true && true", True),
        ("true $HOME", True),
        ("true 'a'", True),
        ("true *", True),
        ("true ~", True),
        ("no-such-program-at-all", True),
    ],
)
def test_a_shell_is_left_out_where_it_would_do_nothing_else(
    commands: Commands, line: str, shell: bool
) -> None:
    """A line that is plain words, the first of which is a program, means the same without it."""
    words = commands.words(line)
    assert shell is (words == ["/bin/sh", "/bin/sh", "-c", line])
    if not shell:
        assert line.split() == words[1:]


def test_a_command_has_its_exit_usage_and_output(commands: Commands) -> None:
    """The output of one is not in that of the next."""
    first = commands.run(b"echo 123; exit 4")
    assert (4, b"123\n", "") == (first.exit, first.output, first.reason)
    second = commands.run(b"kill -TERM $$")
    assert (-15, b"") == (second.exit, second.output)
    long = commands.run(b"echo 0123456789ab")
    assert b"0123456789a" == long.output, "one byte more than is kept says that there was more"
    assert b"" == commands.run(b"true").output


LEAVES = b"mkfifo begun go told; setsid sh -c 'echo >begun; read x <go; echo 1; echo >told' & read x <begun; echo 2"
GOES_ON = b"echo >go; read x <told; echo 3"


def test_what_a_task_has_left_prints_into_no_other_task(commands: Commands) -> None:
    """A process outside of its group goes on: nobody has what it prints then."""
    assert [b"2\n", b"3\n"] == [commands.run(each).output for each in (LEAVES, GOES_ON)]


def test_a_lane_of_its_own_notices_what_a_task_has_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is the parent of what others leave, and has another file for the next task then."""
    monkeypatch.chdir(tmp_path)
    lane, found = Lane({}, sys.executable, b""), list[Done]()
    for number, line in enumerate((LEAVES, GOES_ON, b"echo 4"), 1):
        lane.give((1, number, line))
    lane.flush()
    while len(found) < 3:
        select.select([lane.socket], [], [])
        found += lane.results() or []
    lane.end()
    assert [b"2\n", b"3\n", b"4\n"] == [each.output for each in found]


ORPHANS = b"""
for each in 1 2 3 4 5 6 7 8; do (true & ); done
for look in $(seq 500); do ps -o stat= --ppid $PPID | grep -q Z || break; sleep 0.02; done
ps -o stat= --ppid $PPID | grep -c Z
"""


def test_what_a_task_leaves_alone_is_waited_for_while_it_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A long one may leave very many, and processes that have ended count where their number is limited."""
    monkeypatch.chdir(tmp_path)
    lane, found = Lane({}, sys.executable, b""), list[Done]()
    lane.give((1, 1, ORPHANS))
    lane.flush()
    while not found:
        select.select([lane.socket], [], [])
        found += lane.results() or []
    lane.end()
    assert b"0\n" == found[0].output


def test_a_program_that_cannot_be_started_is_the_reason(commands: Commands, tmp_path: Path) -> None:
    """As a shell says it: 126."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF")
    broken.chmod(0o755)
    found = commands.run(os.fsencode(broken))
    assert 126 == found.exit
    assert "cannot be started" in found.reason


def functions(function: object, **plan: Any) -> Functions:
    lane = Functions({"output": 100, **plan})
    lane.take(pickle.dumps(function))
    return lane


def test_a_function_returns_or_raises() -> None:
    """What it raises is the reason, with the traceback as output."""
    lane = functions(int)
    assert 12 == pickle.loads(lane.run(pickle.dumps(("12",))).output)
    failed = lane.run(pickle.dumps(("x",)))
    assert 1 == failed.exit
    assert failed.reason.startswith("ValueError: invalid literal")
    assert b"Traceback" in failed.output


def test_a_result_that_is_too_long_is_a_failure() -> None:
    """A part of a pickle is of no use."""
    found = functions(bytes).run(pickle.dumps((1000,)))
    assert (1, b"") == (found.exit, found.output)
    assert "the queue keeps 100" in found.reason


def test_a_function_that_cannot_be_had_fails_each_call() -> None:
    """With the reason."""
    lane = Functions({})
    lane.take(b"cno_such_module\nf\n.")
    assert "the function cannot be had here: ModuleNotFoundError" in lane.run(pickle.dumps(())).reason


def test_a_program_answers_lines_and_is_started_again() -> None:
    """One that ends without an answer has failed that task alone."""
    script = 'while read x; do [ $x = end ] && exit 3; echo "got $x"; done'
    lane = Lines({"program": ["/bin/sh", "-c", script]})
    assert (0, b"got 1") == (lane.run(b"1").exit, lane.run(b"1").output)
    gone = lane.run(b"end")
    assert (3, "the program has ended without an answer") == (gone.exit, gone.reason)
    assert b"got 2" == lane.run(b"2").output
    assert 3 == lane.run(b"end").exit
    assert 127 == Lines({"program": ["/no/such/program"]}).run(b"1").exit
