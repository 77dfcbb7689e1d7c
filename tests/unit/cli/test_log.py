"""The pure parts of `kettle log`: moments, spans, patterns, and the search for a frame by its time."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.audit.sampling import Root, Sample, root_of
from kettle_services.cli.__main__ import main
from kettle_services.cli.log.event_pages import EventFilter, pattern_of
from kettle_services.cli.log.frame_search import Search, last_until
from kettle_services.cli.times import micros, moment, precise, rfc3339, span
from kettle_wire.frames import Entry

NOW = datetime(2026, 11, 21, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h30m", 9000), ("30d", 2_592_000), ("1w", 604_800), ("1.5h", 5400)],
)
def test_spans(text: str, seconds: float) -> None:
    """Units add up."""
    assert seconds == span(text)


@pytest.mark.parametrize("text", ["", "10", "m", "10x", "-10m", "10 m", "1h-5m"])
def test_what_is_no_span(text: str) -> None:
    """What has no unit, or another one, is refused."""
    with pytest.raises(ValueError, match="no span of time"):
        span(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T14:00:00Z", datetime(2026, 11, 20, 14, tzinfo=UTC)),
        ("2026-11-20T14:00:00.250000Z", datetime(2026, 11, 20, 14, 0, 0, 250_000, tzinfo=UTC)),
        ("2026-11-20T15:00:00+01:00", datetime(2026, 11, 20, 14, tzinfo=UTC)),
        ("10m", NOW - timedelta(minutes=10)),
        ("-10m", NOW - timedelta(minutes=10)),
        ("2h30m", NOW - timedelta(hours=2, minutes=30)),
        ("now", NOW),
    ],
)
def test_moments(text: str, expected: datetime) -> None:
    """A moment is what it says, and a span counts back from now."""
    assert micros(expected) == moment(text, now=NOW)


@pytest.mark.parametrize("text", ["2026-11-20 14:00", "2026-11-20T14:00:00", "2026-11-20"])
def test_moments_of_local_time(text: str) -> None:
    """What names no zone is local time."""
    local = datetime.fromisoformat(text).astimezone()
    assert micros(local) == moment(text, now=NOW)


def test_a_time_of_day_is_of_today() -> None:
    """Hours and minutes alone are those of the local day."""
    midnight = NOW.astimezone().replace(hour=0, minute=0)
    assert micros(midnight.replace(hour=14, minute=5)) == moment("14:05", now=NOW)
    assert micros(midnight.replace(hour=9, minute=5)) == moment("9:05", now=NOW)


@pytest.mark.parametrize("text", ["", "noon", "25:00", "2026-13-01", "10", "-10", "10x", "99999999d"])
def test_what_is_no_moment(text: str) -> None:
    """Anything else is refused with the forms there are."""
    with pytest.raises(ValueError, match="no moment: write it as 2026-11-20T14:00:00Z"):
        moment(text, now=NOW)


@given(st.integers(0, 4_000_000_000_000_000))
def test_moments_come_back(at: int) -> None:
    """
    What is printed for programs is read as the same microsecond; for people as well, outside of a doubled hour.
    """
    assert at == moment(rfc3339(at), now=NOW)
    assert precise(at).endswith(f".{at % 1_000_000:06}")


@given(st.lists(st.integers(0, 50)).map(sorted), st.integers(-1, 51))
def test_the_last_frame_until_a_moment(times: list[int], at: int) -> None:
    """The search finds what looking at every frame would, and looks at few."""
    looked: list[int] = []
    with pytest.raises(StopIteration) as found:
        _drive(last_until(1, len(times), at), times, looked)
    assert sum(time <= at for time in times) == found.value.value
    assert len(looked) <= len(times).bit_length()


def _drive(search: Search, times: list[int], looked: list[int]) -> None:
    frame = next(search)
    while True:
        looked.append(frame)
        frame = search.send(times[frame - 1])


@pytest.mark.parametrize(
    ("said", "takes", "leaves"),
    [
        ("job", "job.held/1", "claim.ended/1"),
        ("job.held", "job.held/2", "job.helder/1"),
        ("job.held/1", "job.held/1", "job.held/2"),
        ("job.*", "job.held/1", "cluster.submitted/1"),
        ("*.ended", "claim.ended/1", "job.vacated/1"),
    ],
)
def test_types(said: str, takes: str, leaves: str) -> None:
    """A noun stands for all its types, a type for all its versions."""
    narrow = EventFilter(after=0, until=0, types=[pattern_of(said)])
    assert [True, False] == [narrow.takes(Entry("s", 1, kind, b"")) for kind in (takes, leaves)]


@pytest.mark.parametrize(
    ("stream", "root"),
    [
        ("job/12.3", Root("cluster", 12)),
        ("cluster/12", Root("cluster", 12)),
        ("cluster/12#left", Root("cluster", 12)),
        ("cluster/12#left.3", Root("cluster", 12)),
        ("factory/12", Root("cluster", 12)),
        ("cluster#newest", None),
        ("claim/a.b#1", Root("claim", "a.b#1")),
        ("cycle/7", Root("cycle", 7)),
        ("machine/node7", Root("machine", "node7")),
    ],
)
def test_what_a_stream_is_about(stream: str, root: Root | None) -> None:
    """A cluster is sampled with all its jobs."""
    assert root == root_of(stream)


def test_a_sample_is_of_the_size_wanted_and_the_same_again() -> None:
    """About as many are taken as were wanted, by the seed."""
    streams = [f"cluster/{number}" for number in range(10_000)]
    taken = [[stream for stream in streams if sample.takes(stream)] for sample in _samples(3, 3, 4)]
    assert 900 < len(taken[0]) < 1100
    assert taken[0] == taken[1]
    assert taken[0] != taken[2]
    assert all(Sample(20, 10, seed=1).takes(stream) for stream in streams)


def _samples(*seeds: int) -> list[Sample]:
    return [Sample(1_000, 10_000, seed=seed) for seed in seeds]


@pytest.mark.parametrize("limit", [["--until", "10:00"], ["schedd.ap", "--frame", "1:9"]])
def test_what_follows_has_no_end(limit: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """A limit would be printed beyond."""
    assert 2 == main(["log", "show", *limit, "--follow"])
    assert "--follow has no end" in capfd.readouterr().err
