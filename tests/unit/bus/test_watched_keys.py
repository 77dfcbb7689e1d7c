"""Which entries of a bucket a watcher takes for over, and when."""

import math

from kettle.bus.ports import KeyChange
from kettle.bus.watched_keys import WatchedKeys


def put(known: WatchedKeys, key: str, until: float) -> None:
    known.record_change(KeyChange(key, b"", 1), until)


def test_an_entry_is_due_when_its_time_is_over() -> None:
    """Not before, and once; one that was renewed is not, and one without an end never is."""
    known = WatchedKeys()
    put(known, "short", 1.0)
    put(known, "renewed", 1.0)
    put(known, "endless", math.inf)
    put(known, "renewed", 5.0)
    assert [] == known.due(0.9)
    assert (["short"], []) == (known.due(1.0), known.due(1.0))
    assert ["renewed"] == known.due(1e9)


def test_a_shorter_life_counts() -> None:
    """The newest entry says until when it lives."""
    known = WatchedKeys()
    put(known, "k", 9.0)
    put(known, "k", 2.0)
    assert 2.0 == known.next_due
    assert ["k"] == known.due(2.0)


def test_a_deleted_entry_is_not_due() -> None:
    """It is over already; set again, it has a time of its own."""
    known = WatchedKeys()
    put(known, "k", 1.0)
    known.record_change(KeyChange("k", None, 2))
    put(known, "k", 3.0)
    assert ([], ["k"]) == (known.due(2.0), known.due(3.0))


def test_what_is_there_still_is_looked_for_less_and_less_often() -> None:
    """
    If the server keeps an entry that should be over; but who waits for its end need not wait long after it.
    """
    known = WatchedKeys()
    put(known, "k", 1.0)
    waits, now = list[float](), 1.0
    while now < 1001.0:
        assert ["k"] == known.due(now)
        known.put_off("k", now)
        waits.append(round(known.next_due - now, 3))
        now = known.next_due
    assert sorted(waits) == waits
    assert (0.1, 10.0) == (waits[0], waits[-1])
    assert len(waits) < 120


def test_a_lost_bucket_takes_everything_that_is_not_sent_again() -> None:
    """Also what has no end."""
    known = WatchedKeys()
    put(known, "a", math.inf)
    put(known, "b", math.inf)
    known.lost(5.0)
    put(known, "b", math.inf)
    assert ([], ["a"]) == (known.due(4.0), known.due(6.0))


def test_renewals_take_no_memory() -> None:
    """A key that is renewed a million times waits in one place."""
    known = WatchedKeys()
    for second in range(100_000):
        put(known, "k", 900.0 + second)
        known.due(second)
    assert len(known._heap) < 3  # pyright: ignore[reportPrivateUsage]
