"""Which file of tests a worker takes next."""

from pathlib import Path

from tests.scheduling import LONG, SCENARIOS, chosen

TOP = Path(__file__).parents[3]
WAITING = ["tests/chaos/test_chaos.py", "tests/scenario/test_access.py", LONG[-1], LONG[0]]


def test_half_of_the_workers_begin_with_the_scenarios() -> None:
    """Each takes the long ones of its own half first, then the others as they come."""
    assert LONG[0].startswith(SCENARIOS)
    assert not LONG[-1].startswith(SCENARIOS)
    for worker, files in ((0, [LONG[0], WAITING[1]]), (3, [LONG[-1], WAITING[0]])):
        left = list(WAITING)
        for expected in files:
            assert expected == chosen(left, worker)
            left.remove(expected)


def test_a_worker_that_is_done_with_its_own_helps_the_others() -> None:
    """No worker is without a file while one waits."""
    assert WAITING[1] == chosen(WAITING[1:2], 1)
    assert LONG[-1] == chosen([WAITING[0], LONG[-1]], 2)


def test_the_long_files_are_there() -> None:
    """A file that was renamed would be begun last."""
    assert [] == [name for name in LONG if not (TOP / name).is_file()]
