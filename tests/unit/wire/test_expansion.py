"""One recorded event of many jobs, and what it says of each."""

import msgspec
import pytest

from kettle.eventsourcing.projection import UnreadableError, decoded_events
from kettle_wire.event_expansion import Expanded, each, expanded, of_job, size, stream_of_many
from kettle_wire.events import JobHeld, JobsChanged, Procs, UnknownEventError, encode
from kettle_wire.frames import Entry, Frame

DATA = encode(JobHeld(code=1, reason="r"))


def many(*jobs: Procs, data: bytes = DATA) -> Entry:
    event = JobsChanged(cluster=3, type="job.held/1", data=msgspec.Raw(data), jobs=list(jobs))
    return Entry("jobs/3", 1, "jobs.changed/1", encode(event))


def frame(*entries: Entry) -> Frame:
    return Frame("schedd.ap", 1, 7, 40, 1, list(entries))


def test_each_entry_has_the_position_of_what_was_recorded() -> None:
    """
    Two events, of which the second stands for three jobs: positions 40 and 41, and the next frame begins at 42.
    """
    single = Entry("job/2.0", 5, "job.held/1", DATA)
    whole = expanded(recorded := frame(single, many(Procs(0, 2, 1), Procs(7, 1, 4))))
    assert [("job/2.0", 5, 40), ("job/3.0", 1, 41), ("job/3.1", 1, 41), ("job/3.7", 4, 41)] == [
        (entry.stream, entry.version, whole.position_of(index)) for index, entry in enumerate(whole.entries)
    ]
    assert ({DATA}, {"job.held/1"}) == (
        {one.data for one in whole.entries},
        {one.type for one in whole.entries},
    )
    assert (41, 41, 4) == (recorded.head, whole.head, size(recorded))
    assert whole is expanded(whole)


def test_a_frame_without_such_events_is_what_it_was() -> None:
    """It is not even copied."""
    plain = frame(Entry("job/2.0", 5, "job.held/1", DATA))
    assert plain is expanded(plain)
    assert (not isinstance(plain, Expanded), 1) == (True, size(plain))


@pytest.mark.parametrize(
    ("stream", "version"), [("job/3.1", 2), ("job/3.2", None), ("job/4.1", None), ("job/3.5", 9)]
)
def test_what_it_says_of_one_job(stream: str, version: int | None) -> None:
    """With the number in the job's own stream, if the job is among them."""
    found = of_job(many(Procs(0, 2, 2), Procs(5, 1, 9)), stream)
    assert version == (found.version if found is not None else None)


def test_where_to_look_for_more() -> None:
    """Only events of jobs are recorded together."""
    assert ["jobs/3", None, None] == [stream_of_many(each) for each in ("job/3.1", "cluster/3", "jobs/3")]


@pytest.mark.parametrize(
    "broken",
    [
        many(Procs(0, 1, 1), data=encode(JobHeld(code=1, reason="r")) + b"x"),
        Entry("jobs/3", 1, "jobs.changed/1", DATA),
    ],
    ids=["what it says", "what it is"],
)
def test_what_cannot_be_read_is_found_where_it_was_recorded(broken: Entry) -> None:
    """A reader that stops there names the position of the log."""
    with pytest.raises(UnreadableError, match="position 41, stream jobs/3"):
        decoded_events(frame(Entry("job/2.0", 5, "job.held/1", DATA), broken))


def test_an_entry_that_only_seems_to_be_one_is_refused() -> None:
    """Its type says that it stands for many, and its bytes are the event of one job."""
    with pytest.raises(UnknownEventError, match=r"an event jobs\.changed/1 is none of many jobs"):
        list(each(Entry("jobs/3", 1, "jobs.changed/1", DATA)))
