import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle_services.collector.domain.update_statistics import HISTORY, MOST_LOST, SWEEP_S, Updates
from kettle_wire.ads.types import Ad, Scalar

CAME = "0" * (HISTORY // 4)


def told(
    updates: Updates, number: Scalar, *, started: Scalar = 100, now: float = 0.0
) -> tuple[int, int, int, str]:
    said: Ad = {"daemonstarttime": started, "updatesequencenumber": number}
    ad = updates.heard("Machine.a", said, now)
    total, sequenced, lost = ad["UpdatesTotal"], ad["UpdatesSequenced"], ad["UpdatesLost"]
    assert isinstance(total, int)
    assert isinstance(sequenced, int)
    assert isinstance(lost, int)
    return total, sequenced, lost, str(ad["UpdatesHistory"])


def test_what_never_came_is_lost() -> None:
    """
    Of the first update nobody knows what was before it; of 4 after 1, that 2 and 3 are missing: 0110 from the newest.
    """
    updates = Updates()
    assert (1, 0, 0, f"0x{CAME}") == told(updates, 7)
    assert (2, 1, 0, f"0x{CAME}") == told(updates, 8)
    assert (3, 4, 2, f"0x6{CAME[1:]}") == told(updates, 11)
    assert (4, 5, 2, f"0x3{CAME[1:]}") == told(updates, 12)
    assert (5, 6, 2, f"0x18{CAME[2:]}") == told(updates, 13)


@pytest.mark.parametrize(("number", "started"), [(1, 200), (500, 200), (1, 100), (7 + MOST_LOST + 1, 100)])
def test_a_daemon_that_starts_again_lost_nothing(number: int, started: int) -> None:
    """It says another start, or counts backwards, or jumps as no daemon does."""
    updates = Updates()
    told(updates, 7)
    assert (2, 0, 0, f"0x{CAME}") == told(updates, number, started=started)
    assert (3, 1, 0, f"0x{CAME}") == told(updates, number + 1, started=started)


def test_the_same_update_counts_once() -> None:
    """A collector that lists the bucket again sees what it has seen."""
    updates = Updates()
    told(updates, 7)
    assert (1, 0, 0, f"0x{CAME}") == told(updates, 7)


@pytest.mark.parametrize(("number", "started"), [(None, 100), ("1", 100), (True, 100), (1, None), (1, "x")])
def test_what_is_not_numbered_is_only_counted(number: Scalar, started: Scalar) -> None:
    """Nobody can say what is missing between two of them."""
    updates = Updates()
    assert (1, 0, 0, f"0x{CAME}") == told(updates, number, started=started)
    assert (2, 0, 0, f"0x{CAME}") == told(updates, number, started=started)


def test_counts_outlive_the_ad_for_days() -> None:
    """
    What a silent daemon sent in the meantime was lost; after two days nobody knows its numbers any more.
    """
    updates = Updates()
    told(updates, 1, now=0.0)
    updates.sweep(SWEEP_S - 1)
    assert 3 == told(updates, 5, now=SWEEP_S)[2]
    updates.sweep(3 * SWEEP_S)
    assert (1, 0, 0, f"0x{CAME}") == told(updates, 9, now=3 * SWEEP_S)


@given(st.lists(st.booleans(), max_size=300))
def test_the_counts_are_those_of_a_list(arrived: list[bool]) -> None:
    """Between the first update that came and the last one each is counted, and the history is their list."""
    updates = Updates()
    first = (1, 0, 0, f"0x{CAME}")
    assert first == told(updates, 1)
    last, found = 0, first
    for number, came in enumerate(arrived, 2):
        if came:
            found = told(updates, number)
            last = number - 1
    known = arrived[:last]
    lost = known.count(False)
    bits = "".join("0" if came else "1" for came in reversed(known)).ljust(HISTORY, "0")[:HISTORY]
    assert (1 + known.count(True), len(known), lost, f"0x{int(bits, 2):0{HISTORY // 4}x}") == found
