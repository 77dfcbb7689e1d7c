"""How often somebody may try."""

import pytest

from kettle.http.rate_limits import Buckets, network
from kettle_services.iam.domain.rate_limits import Alarms


def test_a_bucket_fills_again() -> None:
    """After the burst there is one more try each ten seconds, and others are not concerned."""
    buckets = Buckets(rate=0.1, burst=2.0)
    assert [0.0, 0.0, 10.0] == [buckets.take("a", now=0.0) for _ in range(3)]
    assert 0.0 == buckets.take("b", now=0.0)
    assert [0.0, 10.0] == [buckets.take("a", now=10.0) for _ in range(2)]


def test_only_so_many_are_remembered() -> None:
    """The one who tried longest ago is forgotten, so that many addresses do not fill the memory."""
    buckets = Buckets(rate=0.1, burst=1.0, most=2)
    for key in "abc":
        buckets.take(key, now=0.0)
    assert [0.0, 10.0] == [buckets.wait(key, now=0.0) for key in "ac"]


def test_alarms_that_are_not_recorded_are_counted() -> None:
    """The next one that is recorded says how many came between."""
    alarms = Alarms(rate=1.0, burst=1.0)
    assert [0, None, None] == [alarms.record(now=0.0) for _ in range(3)]
    assert 2 == alarms.record(now=1.0)
    assert 0 == alarms.record(now=2.0)


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_who_has_many_addresses_is_one(address: str, counted: str) -> None:
    """All of a network of IPv6, and both ways to write an IPv4 address."""
    assert counted == network(address)
