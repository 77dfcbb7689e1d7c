"""The share of its time in which a service works."""

from kettle.runtime.duty_cycle import DutyCycle


def test_the_share_is_of_the_time_since_the_last_ad() -> None:
    used, now = [10.0], [100.0]
    duty = DutyCycle(lambda: used[0], lambda: now[0])
    used[0], now[0] = 12.0, 108.0
    assert {"RecentDaemonCoreDutyCycle": 0.25} == duty.facts()
    now[0] = 108.5
    assert {"RecentDaemonCoreDutyCycle": 0.25} == duty.facts(), "half a second says nothing"
    used[0], now[0] = 30.0, 110.0
    assert {"RecentDaemonCoreDutyCycle": 1.0} == duty.facts(), "two cores for a while are not more than all"
