"""How often a batch system is asked, and how late it is known what changes there."""

import pytest

from kettle_services.ce.domain.attempts.pace import LIVELY_S, Pace


def asked(took: float, changes: list[float], until: float) -> tuple[list[float], list[float]]:
    """
    When it is asked, and how much later each change is known, if each answer takes so long and says what was true when it began.
    """
    pace, now = Pace(1.0, 10.0), 0.0
    questions: list[float] = []
    known: list[float] = []
    waiting = sorted(changes)
    while now < until:
        questions.append(now)
        began, now = now, now + took
        for change in [each for each in waiting if each <= began]:
            waiting.remove(change)
            known.append(now - change)
            pace.happened(now)
        now += pace.pause(took, now)
    assert [] == waiting
    return questions, known


@pytest.mark.parametrize(
    ("took", "share"), [(0.01, 1 / 3), (0.1, 1 / 3), (0.3, 1 / 3), (0.5, 1 / 3), (0.6, 0.45), (0.66, 0.51)]
)
def test_what_changes_while_others_do_is_known_within_two_seconds(took: float, share: float) -> None:
    """
    However many jobs change: each question is about all of them, and they are asked for a third of the time, or for up to half of it if
    it is slow.
    """
    changes = [10.0 + 0.7 * number for number in range(500)]
    questions, known = asked(took, changes, 400.0)
    busy = [each for each in questions if 30.0 <= each < 330.0]
    assert 500 == len(known)
    assert max(known[20:]) <= 2.0
    assert len(busy) * took <= 300.0 * share
    assert len(busy) <= 300


@pytest.mark.parametrize("took", [0.8, 2.0, 4.0])
def test_one_that_is_too_slow_has_half_of_its_time_for_others(took: float) -> None:
    """What changes is known as soon as that allows."""
    questions, known = asked(took, [10.0 + 0.7 * number for number in range(500)], 400.0)
    busy = [each for each in questions if 30.0 <= each < 330.0]
    assert len(busy) * took <= 150.0 + took
    assert max(known[20:]) <= 3 * took + 1e-6


@pytest.mark.parametrize(("took", "a_minute"), [(0.01, 60), (0.2, 15), (0.5, 6), (3.0, 5)])
def test_one_that_is_quiet_is_left_alone(took: float, a_minute: int) -> None:
    """What answers slowly is asked seldom when nothing changes, and at most so often."""
    questions, _ = asked(took, [1.0], 600.0)
    assert len([each for each in questions if 200.0 <= each < 260.0]) <= a_minute


def test_it_is_asked_more_often_for_a_while_after_something_has_happened() -> None:
    """A change is followed by others."""
    questions, _ = asked(0.4, [300.0], 600.0)
    before = len([each for each in questions if 200.0 <= each < 200.0 + LIVELY_S])
    after = len([each for each in questions if 310.0 <= each < 310.0 + LIVELY_S - 10.0])
    assert after > 4 * before
