"""The answers that commands got first, alone or with others."""

import pytest

from kettle.eventsourcing.first_answers import FirstAnswers, answers_in, as_one
from kettle.eventsourcing.log import Answered


def alone(command: str) -> Answered:
    return Answered(id=command, frame=1, reply=command.encode())


def together(*commands: str) -> Answered:
    return as_one(commands, 1, [command.encode() for command in commands])


def test_answers_to_many_commands_are_stored_as_one() -> None:
    """Under a name that no command has, because an identity comes first in those."""
    stored = together("u-ann:submit:a", "u-ann:submit:b")
    assert "together u-ann:submit:a" == stored.id
    assert {"u-ann:submit:a": b"u-ann:submit:a", "u-ann:submit:b": b"u-ann:submit:b"} == answers_in(stored)
    assert {"u-ann:submit:a": b"u-ann:submit:a"} == answers_in(alone("u-ann:submit:a"))


def test_what_is_decided_and_not_committed_is_known_without_an_answer() -> None:
    """It gets one with its commit."""
    answers = FirstAnswers([together("a", "b")], keep=10)
    answers.expect(["c", "d"])
    assert (True, None, b"a") == ("d" in answers, answers.find("d"), answers.find("a"))
    answers.note([together("c", "d")])
    assert b"d" == answers.find("d")


@pytest.mark.parametrize("size", [1, 4])
def test_enough_stored_answers_are_kept_for_the_newest_commands(size: int) -> None:
    """However many commands each is for: as many as are to be known after a restart, and no row more."""
    answers = FirstAnswers([], keep=8)
    kept: list[int] = []
    for number in range(0, 40, size):
        answers.note([together(*(f"c{each}" for each in range(number, number + size)))])
        if (enough := answers.enough()) is not None:
            kept.append(enough)
    assert ({8 // size}, 40 // (8 + size)) == (set(kept), len(kept))
    assert [False, True] == [command in answers for command in ("c31", "c32")]


def test_what_waits_for_its_commit_is_not_forgotten() -> None:
    """It is older than what was answered after it."""
    answers = FirstAnswers([], keep=2)
    answers.expect(["early"])
    answers.note(map(alone, "abc"))
    assert "early" in answers
