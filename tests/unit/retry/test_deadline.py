"""By when something has to be done."""

import math

from kettle.retry.deadline import Deadline


def test_what_is_left_shrinks_to_nothing() -> None:
    """And never below."""
    now = 100.0
    deadline = Deadline(5.0, now=lambda: now)
    assert (5.0, False) == (deadline.left(), deadline.passed)
    now = 104.0
    assert (1.0, False) == (deadline.left(), deadline.passed)
    now = 105.0
    assert (0.0, True) == (deadline.left(), deadline.passed)
    now = 200.0
    assert (0.0, True) == (deadline.left(), deadline.passed)


def test_there_may_be_all_the_time_in_the_world() -> None:
    """A deadline that never passes needs no case of its own."""
    deadline = Deadline(math.inf)
    assert (math.inf, False) == (deadline.left(), deadline.passed)
