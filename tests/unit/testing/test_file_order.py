"""Which file of tests a worker takes next."""

from pathlib import Path

from tests.scheduling import LONG, OWN_POOL, PAGES, SCENARIOS, chosen, piece_of

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


def test_scenarios_with_other_services_come_last() -> None:
    """The shared pool is started once more for each of them, and not also for what comes behind it."""
    left = [f"{SCENARIOS}test_{name}.py" for name in ("ce", "basic", "dask_client_only", "urls")]
    order: list[str] = []
    while left:
        order.append(chosen(left, 0))
        left.remove(order[-1])
    assert [f"{SCENARIOS}test_{name}.py" for name in ("basic", "dask_client_only", "urls", "ce")] == order


def test_scenarios_with_the_settings_of_another_are_one_piece_with_it() -> None:
    """Those that have some of their own besides are not."""
    for name, of in {
        "dag_language": "workflows",
        "workflows": "workflows",
        "rest_v1_workflows": "rest_v1_workflows",
    }.items():
        assert f"{SCENARIOS}test_{of}.py" == piece_of(f"{SCENARIOS}test_{name}.py::test_a")


def test_pages_are_one_piece() -> None:
    """Each other file is one, whatever its tests are called."""
    assert (
        PAGES
        == piece_of(f"{PAGES}/test_past.py::test_a[x::y]")
        == piece_of(f"{PAGES}/test_sign_in.py::test_b")
    )
    assert OWN_POOL == piece_of(f"{OWN_POOL}::test_c")
    assert "tests/unit/test_d.py" == piece_of("tests/unit/test_d.py::D::test_e")


def test_the_files_of_the_order_are_there() -> None:
    """A file that was renamed would be begun last."""
    assert [] == [name for name in (*LONG, OWN_POOL) if not (TOP / name).exists()]
