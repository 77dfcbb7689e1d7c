"""When reports wait for others."""

from kettle_services.startd.domain.report_pacing import GATHER_S, ReportPacing


def paced(rush: ReportPacing, now: float, gap: float, count: int) -> float:
    """So many reports, one every so many seconds; the time of the last."""
    for _ in range(count):
        now += gap
        rush.came(now)
    return now


def test_what_happens_now_and_then_is_told_at_once() -> None:
    rush = ReportPacing()
    assert 0.0 == rush.wait
    rush.came(100.0)
    assert 0.0 == rush.wait
    paced(rush, 100.0, GATHER_S, 1000)
    assert 0.0 == rush.wait, "nothing would come while it waits"


def test_what_comes_thick_waits_for_more() -> None:
    """Also when it comes in bursts: it is the mean that counts."""
    rush = ReportPacing()
    now = paced(rush, 100.0, 0.001, 60)
    assert GATHER_S == rush.wait
    for _ in range(10):
        now = paced(rush, now, 0.0001, 7)
        now = paced(rush, now, 0.008, 1)
        assert GATHER_S == rush.wait


def test_a_rest_ends_a_rush() -> None:
    """However thick the reports came before it."""
    rush = ReportPacing()
    now = paced(rush, 100.0, 0.0001, 1000)
    rush.came(now + 1.0)
    assert 0.0 == rush.wait
