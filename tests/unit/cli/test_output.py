"""Where output cannot go and input cannot come from: closed pipes, full disks, closed descriptors."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

KETTLE: Final = f"{sys.executable} -P -m kettle_services.cli"
FULL: Final = "kettle: cannot write: No space left on device\n"
CLOSED: Final = "kettle: cannot write: there is no standard output\n"


def shell(command: str, *, stdin: str = "") -> tuple[int, str]:
    """The exit status and standard error of a command line, whose `kettle` is ours."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'kettle() {{ {KETTLE} "$@"; }}; {command}'],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    return done.returncode, done.stderr


@pytest.fixture
def mismatch(tmp_path: Path) -> str:
    """The words of a match whose verdict is no, status 1."""
    (tmp_path / "no").write_text("[ Requirements = false ]")
    return f"classad match {tmp_path}/no {tmp_path}/no"


@pytest.mark.parametrize(("unbuffered", "status"), [("", 1), ("1", 141)])
def test_a_reader_that_went_away_makes_no_verdict_good(mismatch: str, unbuffered: str, status: int) -> None:
    """The status is the verdict, or 141 where it was not known by then; nothing is said."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [*KETTLE.split(), *mismatch.split()],
        stdout=theirs,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
        env={"PYTHONUNBUFFERED": unbuffered},
    )
    os.close(theirs)
    assert (status, b"") == (done.returncode, done.stderr)


def test_a_refusal_that_nobody_hears_is_one() -> None:
    """Standard error may go into a closed pipe too."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [*KETTLE.split(), "classad", "eval", "1 +"],
        stdout=theirs,
        stderr=theirs,
        timeout=120,
        check=False,
        env={},
    )
    os.close(theirs)
    assert 141 == done.returncode


def test_a_stream_that_is_cut_ends_like_any_other() -> None:
    """`head` has seen enough: 141 is what the shell calls that."""
    assert (141, "") == shell("yes 1 | kettle classad eval --batch | head -1; exit ${PIPESTATUS[1]}")


@pytest.mark.parametrize(
    ("where", "sentence"),
    [(">/dev/full", FULL), (">&-", CLOSED), (">/dev/full 2>/dev/full", ""), (">&- 2>&-", "")],
)
def test_what_cannot_be_written_is_no_verdict(mismatch: str, where: str, sentence: str) -> None:
    """Status 2 and a sentence, if there is anywhere to put it."""
    for words in (mismatch, "classad eval 1", "classad convert --to json", "help", "version"):
        assert (2, sentence) == shell(f"kettle {words} {where}", stdin="A = 1")


def test_closed_standard_error_takes_nothing() -> None:
    """What belongs there does not go to standard output instead."""
    assert (1, "") == shell(
        "said=$(kettle classad eval '1 +' 2>&-); status=$?; echo -n \"$said\" >&2; exit $status"
    )


@pytest.mark.parametrize("words", ["eval --batch", "eval --my - 1", "convert --to json", "match - /dev/null"])
def test_closed_standard_input_is_a_sentence(words: str) -> None:
    """It is not taken for an empty one."""
    assert (2, "kettle classad: there is no standard input\n") == shell(f"kettle classad {words} <&-")
