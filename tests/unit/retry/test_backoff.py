"""How long to wait after a failure."""

from hypothesis import given
from hypothesis import strategies as st

from kettle.retry.backoff import Backoff, steady

DOUBLING = Backoff(first=0.5, longest=4.0)


def test_waits_double_up_to_the_longest() -> None:
    """The first failure is number 0."""
    assert [0.5, 1.0, 2.0, 4.0, 4.0] == [DOUBLING.length(n) for n in range(5)]


def test_the_longest_counts_from_the_first_wait_on() -> None:
    """And for what is added to each wait, too."""
    assert 4.0 == Backoff(first=9.0, longest=4.0).length(0)
    assert 4.0 == Backoff(first=1.0, constant=9.0, longest=4.0).length(0)


def test_no_row_is_too_long() -> None:
    """The power is not taken where it would overflow."""
    assert 4.0 == DOUBLING.length(10**9)


def test_steady_waits_do_not_grow() -> None:
    """However many failures there were."""
    assert [2.0, 2.0] == [steady(2.0).length(n) for n in (0, 9)]


@given(st.integers(0, 100), st.floats(0.001, 10), st.floats(0.001, 100), st.floats(0, 1), st.floats(0, 1))
def test_a_wait_is_cut_by_no_more_than_its_share(
    failures: int, first: float, longest: float, spread: float, entropy: float
) -> None:
    """Entropy 0 is the shortest wait, 1 the whole one."""
    backoff = Backoff(first=first, longest=longest, spread=spread)
    whole = backoff.length(failures)
    assert whole * (1 - spread) <= backoff.delay(failures, entropy) * (1 + 1e-9)
    assert backoff.delay(failures, entropy) <= whole
    assert whole == backoff.delay(failures, 1.0)


def test_who_is_alone_waits_for_the_same_time() -> None:
    """Without a spread chance changes nothing."""
    alone = Backoff(first=1.0, longest=8.0, spread=0.0)
    assert {2.0} == {alone.delay(1, entropy) for entropy in (0.0, 0.3, 1.0)}
