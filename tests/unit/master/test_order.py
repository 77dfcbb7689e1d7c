from itertools import chain
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kettle.master.domain.disk import shortage
from kettle.master.domain.order import DAEMON_LIST, NEEDS_DATABASE, stop_stages


def test_work_ends_before_what_records_it() -> None:
    """
    The machine stops first, then the submit side, then the queue, then everybody else in reverse order.
    """
    assert [["startd"], ["shadow"], ["schedd"], ["accounting", "negotiator", "collector"]] == stop_stages(
        DAEMON_LIST
    )


@given(st.lists(st.sampled_from([*DAEMON_LIST, "gateway", "scaler"]), unique=True))
def test_everything_is_stopped_once(daemons: list[str]) -> None:
    """
    Whatever is in the list is stopped exactly once.
    """
    assert sorted(daemons) == sorted(chain.from_iterable(stop_stages(daemons)))


def test_the_worker_side_has_no_way_into_the_database() -> None:
    """
    A startd or a shadow is never given the database's URL.
    """
    assert not NEEDS_DATABASE & {"startd", "shadow", "starter"}


def test_a_full_disk_is_a_sentence() -> None:
    """
    Too little room is refused with what there is, what is needed and which setting says so.
    """
    sentence = shortage(Path("/home/k"), free_bytes=5 << 20, minimum_bytes=128 << 20)
    assert "/home/k" in sentence
    assert "5 MiB" in sentence
    assert "128 MiB" in sentence
    assert "minimum_disk_mib" in sentence
    assert shortage(Path("/home/k"), free_bytes=128 << 20, minimum_bytes=128 << 20) == ""
