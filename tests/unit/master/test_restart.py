import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.retry.backoff import Backoff
from kettle_services.master.domain.restart import HTCONDOR, Again, Leave, after_end, silent


def test_the_wait_is_htcondors() -> None:
    """The defaults wait 9 + 2^n seconds, an hour at most."""
    assert [10, 11, 13, 17, 25] == [HTCONDOR.length(n) for n in range(5)]
    assert HTCONDOR.length(12) == 3600


@given(st.integers(0, 10_000), st.floats(0, 100), st.floats(0, 10), st.floats(1, 8))
def test_a_longer_row_never_waits_less(n: int, constant: float, unit: float, factor: float) -> None:
    """The wait grows with the row of failures up to the ceiling, however long the row."""
    backoff = Backoff(constant=constant, first=unit, factor=factor, longest=500.0)
    assert backoff.length(n) <= backoff.length(n + 1) <= 500.0


def test_each_end_lengthens_the_row() -> None:
    """A service that keeps ending waits longer each time."""
    first = after_end(HTCONDOR, failures=0, ran_s=1, status=-9)
    assert Again(10, 1) == first
    assert Again(11, 2) == after_end(HTCONDOR, failures=1, ran_s=1, status=-9)


def test_running_long_enough_forgives() -> None:
    """After `recover` seconds of running the series of delays starts over."""
    assert Again(10, 1) == after_end(HTCONDOR, failures=7, ran_s=300, status=1)
    assert Again(137, 8) == after_end(HTCONDOR, failures=7, ran_s=299.9, status=1)


@pytest.mark.parametrize("status", [99, 44, 78])
def test_some_ends_are_final(status: int) -> None:
    """A service that asks for it, cannot log or cannot use its settings is not started again."""
    assert isinstance(after_end(HTCONDOR, failures=0, ran_s=1, status=status), Leave)


@pytest.mark.parametrize("status", [0, 1, 70, -9, -11])
def test_every_other_end_is_not_final(status: int) -> None:
    """Nobody had asked it to end, so even a clean exit is followed by a start."""
    assert isinstance(after_end(HTCONDOR, failures=0, ran_s=1, status=status), Again)


def test_silence_is_a_hang() -> None:
    """A service hangs when its last sign is older than the timeout."""
    assert silent(now=100, last_sign=89, timeout=10, looked=99, period=1)
    assert not silent(now=100, last_sign=91, timeout=10, looked=99, period=1)


def test_a_master_that_slept_accuses_nobody() -> None:
    """If the master itself was stopped, the silence is its own."""
    assert not silent(now=100, last_sign=50, timeout=10, looked=50, period=1)
