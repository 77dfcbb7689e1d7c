"""One recorded event of many jobs or clusters, and what it says of each."""

import msgspec
import pytest

from kettle.eventsourcing.projection import UnreadableError, decoded_events
from kettle_wire.event_expansion import (
    SPAN,
    Expanded,
    each,
    events_of,
    expanded,
    of_stream,
    size,
    stream_of_many,
)
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    JobHeld,
    JobsChanged,
    Procs,
    UnknownEventError,
    decode,
    encode,
)
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
    found = of_stream(many(Procs(0, 2, 2), Procs(5, 1, 9)), stream)
    assert version == (found.version if found is not None else None)


def test_where_to_look_for_more() -> None:
    """Events of jobs are recorded together by their cluster, submissions by their numbers."""
    names = ("job/3.1", "jobs/3", "cluster/3", f"cluster/{SPAN}", f"cluster/{3 * SPAN - 1}", "claim/x")
    expected = ["jobs/3", None, "clusters/0", f"clusters/{SPAN}", f"clusters/{2 * SPAN}", None]
    assert expected == [stream_of_many(each) for each in names]


ALIKE = ClustersSubmitted(
    first=7,
    owner="ann",
    ad={"Cmd": "x", "Args": "of the first"},
    columns=["Args", "RequestCpus"],
    rows=[["a", 1], ["b", 2]],
)


def test_submissions_that_were_recorded_together_are_each_one_of_its_own() -> None:
    """As `cluster.submitted` of one job would say it, with the first number in its stream."""
    recorded = frame(Entry("clusters/0", 4, "clusters.submitted/1", encode(ALIKE)))
    whole = expanded(recorded)
    assert [("cluster/7", 1, "cluster.submitted/1", 40), ("cluster/8", 1, "cluster.submitted/1", 40)] == [
        (each.stream, each.version, each.type, whole.position_of(index))
        for index, each in enumerate(whole.entries)
    ]
    first, second = events_of(whole)
    assert second == ClusterSubmitted(
        cluster=8, owner="ann", ad={"Cmd": "x", "Args": "b", "RequestCpus": 2}, columns=[], rows=[[]]
    )
    assert ([*ALIKE.each()], 2) == ([first, second], size(recorded))


@pytest.mark.parametrize(
    ("stream", "found"),
    [("cluster/7", 7), ("cluster/8", 8), ("cluster/6", None), ("cluster/9", None), ("job/7.0", None)],
)
def test_what_it_says_of_one_cluster(stream: str, found: int | None) -> None:
    """Of those that it is about, and of no job."""
    entry = of_stream(Entry("clusters/0", 4, "clusters.submitted/1", encode(ALIKE)), stream)
    assert (None if found is None else ALIKE.one(found)) == (None if entry is None else decode(entry.data))


def test_no_cluster_before_the_first_is_one_of_them() -> None:
    """A number that is too small is not counted from the end."""
    for cluster in (6, 9):
        with pytest.raises(IndexError):
            ALIKE.one(cluster)


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
