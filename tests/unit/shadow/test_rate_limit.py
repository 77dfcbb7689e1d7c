"""How much a job may say of itself."""

from kettle_services.shadow.domain.rate_limit import Allowance


def test_what_is_taken_comes_back_with_time() -> None:
    """As much at once as it holds, then so much in an hour, and never more than it holds."""
    allowance = Allowance(2, 60, 0.0)

    assert [True, True, False] == [allowance.take(1, 0.0) for _ in range(3)]
    assert [False, True, False] == [allowance.take(1, at) for at in (59.0, 60.0, 61.0)]
    assert [True, True, False] == [allowance.take(1, 7200.0) for _ in range(3)]
