"""Which consumers a collector makes for members of other accounts."""

import pytest

from kettle_services.collector.domain.reader_requests import (
    Kept,
    Reader,
    ReaderError,
    TooManyReadersError,
    accepted,
)
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
STREAM, OWN, EVERYTHING = SUBJECTS.monitor_stream, SUBJECTS.monitor("ada"), SUBJECTS.monitor(None)
UNKNOWN = "n" * 22
DAY_NS = 86_400 * 10**9


def reader(name: str = "n", of: str = OWN, **config: object) -> Reader:
    return accepted(SUBJECTS, STREAM, name, of, {"filter_subject": of, **config} if of else config)


def test_what_is_pulled_from_is_taken_over() -> None:
    """What the client says, and how long a pull may wait."""
    found = reader(durable_name="n", ack_policy="explicit", deliver_policy="all", flow_control=False)
    assert ("ada", 7 * 86_400.0) == (found.owner, found.idle)
    assert found.config == {
        "max_expires": 60 * 10**9,
        "durable_name": "n",
        "ack_policy": "explicit",
        "deliver_policy": "all",
        "filter_subject": OWN,
    }


@pytest.mark.parametrize(
    "config",
    [
        {"deliver_subject": "x"},
        {"deliver_group": "g"},
        {"idle_heartbeat": 1},
        {"rate_limit_bps": 1},
        {"what_a_later_server_knows": 1},
        {"inactive_threshold": 31 * DAY_NS},
        {"inactive_threshold": "x"},
        {"durable_name": "another"},
        {"filter_subject": EVERYTHING},
        {"filter_subjects": [OWN, EVERYTHING]},
    ],
    ids=str,
)
def test_anything_else_is_refused(config: dict[str, object]) -> None:
    """Also what nobody knows yet."""
    with pytest.raises(ReaderError):
        accepted(SUBJECTS, STREAM, "n", OWN, {"filter_subject": OWN, **config})


@pytest.mark.parametrize(
    "of", ["", EVERYTHING, SUBJECTS.monitor(None, "job.held"), SUBJECTS.tail_pool("*.*")]
)
def test_who_reads_everybodys_events_has_a_name_that_nobody_guesses(of: str) -> None:
    """A short one is refused; for one's own events it is not."""
    with pytest.raises(ReaderError, match="nobody guesses"):
        reader("prometheus", of)
    assert ("", "ada") == (reader(UNKNOWN, of).owner, reader("prometheus").owner)


def test_no_other_stream_is_read() -> None:
    """Neither that of a shard nor a bucket."""
    for stream in (SUBJECTS.event_stream("collector"), f"KV_{SUBJECTS.ads}", "", "x"):
        with pytest.raises(ReaderError):
            accepted(SUBJECTS, stream, UNKNOWN, "", {})


@pytest.mark.parametrize("shard", ["schedd=2E=ZZ", "schedd=2E=FF", "schedd=2E=-1"])
def test_a_filter_that_only_looks_like_a_shard_is_refused_and_no_more(shard: str) -> None:
    """
    A person says the end of the filter as he likes, and what nobody foresaw ends the collector: of his own events it is a filter like
    any, and of any other stream it is refused.
    """
    of = SUBJECTS.monitor("ada", f"job.{shard}")
    assert "ada" == reader(of=of).owner
    with pytest.raises(ReaderError):
        accepted(SUBJECTS, f"KV_{SUBJECTS.leases}", "n", of, {"filter_subject": of})


def test_a_person_has_so_many_consumers() -> None:
    """
    More wait until unused ones are forgotten; others make theirs meanwhile, and one that is made again counts once.
    """
    kept = Kept()
    for number in range(300):
        kept.add(reader(f"n{number}"), now=0.0)
    kept.add(reader("n7"), now=0.0)
    with pytest.raises(TooManyReadersError):
        kept.add(reader("more"), now=59.0)
    kept.add(reader("n", SUBJECTS.monitor("bob")), now=59.0)
    kept.add(reader("more"), now=61.0)
