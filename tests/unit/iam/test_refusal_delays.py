"""How long those wait for their refusal who come again and again with wrong tokens."""

from collections import Counter

from kettle_services.iam.people.refusals import (
    AT_FIRST,
    LEAST_S,
    MOST_KEPT,
    MOST_OF_ONE,
    MOST_S,
    PER_S,
    RefusalDelays,
)

FLOOD = "192.0.2.1"


def used_up(delays: RefusalDelays, address: str) -> None:
    for _ in range(int(AT_FIRST)):
        assert not delays.keep(address, now=0.0)


def test_a_few_wrong_ones_are_refused_at_once() -> None:
    """And some in each second after that; who comes from elsewhere has tries of his own."""
    delays = RefusalDelays()
    used_up(delays, FLOOD)
    assert delays.keep(FLOOD, now=0.0)
    assert not delays.keep("192.0.2.2", now=0.0)
    later = [bool(delays.keep(FLOOD, now=1.0)) for _ in range(int(PER_S) + 1)]
    assert [False] * int(PER_S) + [True] == later


def test_those_who_were_refused_together_do_not_come_again_together() -> None:
    """Each tenth of the time in which they may come has its share of them."""
    delays = RefusalDelays()
    used_up(delays, FLOOD)
    kept = [delays.keep(FLOOD, now=0.0) for _ in range(100)]
    tenths = Counter(int((each - LEAST_S) / (MOST_S - LEAST_S) * 10) for each in kept)
    assert set(range(10)) == set(tenths)
    assert max(tenths.values()) - min(tenths.values()) < 4


def test_a_network_of_many_addresses_is_one_asker() -> None:
    """Of IPv6 somebody has 64 bits of addresses to choose from."""
    delays = RefusalDelays()
    for number in range(int(AT_FIRST)):
        assert not delays.keep(f"2001:db8::{number:x}", now=0.0)
    assert delays.keep("2001:db8::ffff", now=0.0)
    assert not delays.keep("2001:db8:0:1::1", now=0.0)


def test_refusals_that_are_kept_take_no_more_places_than_there_are() -> None:
    """Beyond them they are sent at once: each that is kept holds a connection."""
    delays = RefusalDelays()
    used_up(delays, FLOOD)
    assert all(delays.keep(FLOOD, now=0.0) for _ in range(MOST_OF_ONE))
    assert not delays.keep(FLOOD, now=0.0)
    delays.let_go(FLOOD)
    assert delays.keep(FLOOD, now=0.0)
    left, address = MOST_KEPT - MOST_OF_ONE, ""
    for number in range(3):
        used_up(delays, address := f"198.51.100.{number}")
        for _ in range(min(left, MOST_OF_ONE)):
            assert delays.keep(address, now=0.0)
            left -= 1
    assert not delays.keep(address, now=0.0)
