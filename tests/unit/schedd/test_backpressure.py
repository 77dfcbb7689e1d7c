"""How long those wait who find the schedd busy."""

import pytest

from kettle_services.schedd.domain.queue.backpressure import (
    LONGEST_MS,
    SHORTEST_MS,
    UNKNOWN_MS,
    CommitRate,
    retry_after_ms,
)


@pytest.mark.parametrize(
    ("backlog", "rate", "expected"),
    [
        (50_000, 50_000.0, 500),
        (75_000, 50_000.0, 1_000),
        (75_000, 25_000.0, 2_000),
        (50_000, 1e9, SHORTEST_MS),
        (50_000, 10.0, LONGEST_MS),
        (50_000, 0.0, LONGEST_MS),
        (50_000, None, UNKNOWN_MS),
    ],
)
def test_the_wait_follows_from_queue_and_rate(backlog: int, rate: float | None, expected: int) -> None:
    """A deep queue or a slow database make it longer; it is never silly."""
    assert expected == retry_after_ms(backlog, 50_000, rate)


def test_the_rate_is_that_of_late() -> None:
    """A fast past does not promise anything when the database is blocked."""
    rate = CommitRate()
    for tenth in range(20):
        rate.note(1_000, tenth / 10)
    assert [10_000.0, 10_000.0, 0.0] == [rate.per_second(now) for now in (2.0, 2.4, 2.6)]


def test_a_pause_says_nothing() -> None:
    """After a time of rest nobody knows how fast the next commits will be."""
    rate = CommitRate()
    rate.note(1_000, 0.0)
    assert [None, None] == [rate.per_second(now) for now in (60.0, 60.1)]


def test_a_rate_is_known_from_the_first_commit_on() -> None:
    """Also before a whole window has passed."""
    rate = CommitRate()
    assert rate.per_second(5.0) is None
    rate.note(500, 5.0)
    assert 1_000.0 == rate.per_second(5.5)
