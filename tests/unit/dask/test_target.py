from hypothesis import given
from hypothesis import strategies as st

from kettle.dask.scheduler.target import TargetSmoothing


def test_more_at_once_and_less_after_a_while() -> None:
    """A gap between two computations costs no worker."""
    target = TargetSmoothing(10.0)
    assert [0, 8, 8, 8, 9, 9, 9, 2] == [
        target.smoothed(asked, now)
        for asked, now in [(0, 0), (8, 1), (1, 2), (2, 10), (9, 11), (2, 12), (2, 21), (2, 21.5)]
    ]


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 5)), min_size=1))
def test_it_is_the_largest_of_the_last_seconds(steps: list[tuple[int, float]]) -> None:
    """As a list of all of them would say it."""
    target, now, seen = TargetSmoothing(10.0), 0.0, list[tuple[float, int]]()
    for asked, later in steps:
        now += later
        seen.append((now, asked))
        assert max(each for at, each in seen if at >= now - 10.0) == target.smoothed(asked, now)
