from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.queue.runnable import PAGE, Runnable
from kettle_wire.jobs import JobId

procs = st.sets(st.integers(0, 30) | st.integers(PAGE - 3, PAGE + 3), min_size=1, max_size=20).map(sorted)


def test_a_place_that_was_left_does_not_count() -> None:
    """A job comes back behind others, not where it was."""
    runnable, one, other = Runnable(), JobId(1, 0), JobId(1, 1)
    runnable.add([one, other], 5)
    runnable.discard([one], 5)
    runnable.add([one], 1)
    assert ((-5, 1, 1), other) == runnable.best()
    runnable.discard([other], 5)
    assert ((-1, 1, 0), one) == runnable.best()
    assert 1 == len(runnable)


@given(st.lists(st.tuples(st.booleans(), procs, st.integers(0, 1), st.booleans())))
def test_the_best_is_the_first_of_those_that_are_in(
    steps: list[tuple[bool, list[int], int, bool]],
) -> None:
    """However many come and go at once, and whether somebody looks in between or not."""
    runnable, there = Runnable(), set[tuple[int, int]]()
    for add, some, priority, look in steps:
        places = {(-priority, proc) for proc in some}
        if add:
            runnable.add([JobId(1, proc) for proc in some], priority)
            there |= places
        else:
            runnable.discard([JobId(1, proc) for proc in some], priority)
            there -= places
        assert len(there) == len(runnable)
        assert sorted((urgency, proc) for urgency, _, proc in runnable.first(40)) == sorted(there)[:40]
        if look:
            first = min(there, default=None)
            best = runnable.best()
            assert (first is None) == (best is None)
            if first is not None and best is not None:
                assert ((first[0], 1, first[1]), JobId(1, first[1])) == best
