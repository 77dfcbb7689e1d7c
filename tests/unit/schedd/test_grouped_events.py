"""What is recorded of many jobs at once."""

import msgspec
import pytest

from kettle_services.schedd.domain.queue.fold import Queue, Unfit, job_stream
from kettle_services.schedd.domain.queue.grouped_events import FEWEST, MOST, MOST_BYTES, group_events
from kettle_wire.events import (
    ClaimEnded,
    ClusterSubmitted,
    Event,
    JobHeld,
    JobReleased,
    JobsChanged,
    Procs,
    encode,
)
from kettle_wire.jobs import JobId

HELD = JobHeld(code=1, reason="r", by="anna")


def recorded(*jobs: JobId, event: JobHeld | JobReleased = HELD, **versions: int) -> list[tuple[str, Event]]:
    """As few events as can be; `versions` are the next ones of some jobs, by number, of others it is 1."""
    return group_events([(job, event) for job in jobs], lambda job: versions.get(f"p{job.proc}", 1))


def ranges(changes: list[tuple[str, Event]]) -> list[tuple[str, list[tuple[int, int, int]]]]:
    return [
        (stream, [(each.first, each.count, each.version) for each in event.jobs])
        for stream, event in changes
        if isinstance(event, JobsChanged)
    ]


def test_a_few_jobs_have_an_event_each() -> None:
    """Where people look first: in the streams of the jobs."""
    jobs = [JobId(3, proc) for proc in range(FEWEST - 1)]
    assert [(job_stream(job), HELD) for job in jobs] == recorded(*jobs)


def test_many_jobs_are_ranges_of_one_version() -> None:
    """A gap, or another number in its own stream, begins another range; another cluster another event."""
    jobs = [JobId(3, proc) for proc in range(20) if proc != 4]
    assert [("jobs/3", [(0, 4, 1), (5, 2, 1), (7, 1, 9), (8, 12, 1)])] == ranges(recorded(*jobs, p7=9))
    other = [JobId(4, proc) for proc in range(10)]
    assert ["jobs/3", "jobs/4"] == [stream for stream, _ in ranges(recorded(*jobs, *other))]


def test_what_differs_is_recorded_apart() -> None:
    """One event says one thing: jobs with another reason have another one."""
    jobs = [JobId(3, proc) for proc in range(20)]
    other = JobHeld(code=1, reason="another", by="anna")
    changes = group_events([(job, HELD if job.proc < 10 else other) for job in jobs], lambda _: 1)
    assert [("jobs/3", [(0, 10, 1)]), ("jobs/3", [(10, 10, 1)])] == ranges(changes)
    said = [event.data for _, event in changes if isinstance(event, JobsChanged)]
    assert [encode(HELD), encode(other)] == [bytes(data) for data in said]


@pytest.mark.parametrize(
    ("reason", "most"), [("r", MOST), ("r" * (MOST_BYTES // 10), 9), ("r" * 2 * MOST_BYTES, 1)]
)
def test_an_event_stands_for_as_much_as_a_reader_takes_at_once(reason: str, most: int) -> None:
    """Not for more jobs than that, and not for more bytes."""
    jobs = [JobId(3, proc) for proc in range(MOST + 1)]
    found = ranges(recorded(*jobs, event=JobHeld(code=1, reason=reason)))
    assert most == max(count for _, ((_, count, _),) in found)
    assert len(jobs) == sum(count for _, ((_, count, _),) in found)


def test_what_does_not_belong_there_is_unfit() -> None:
    """An event of many jobs can only be one of jobs, and of those that are in the queue."""
    queue = Queue("ap")
    queue.apply("cluster/1", ClusterSubmitted(cluster=1, owner="anna", ad={}, columns=[], rows=[[]]), 1)
    ended = msgspec.Raw(encode(ClaimEnded(claim="c", reason="r")))
    with pytest.raises(Unfit, match=r"claim\.ended/1 does not belong into the stream of a job"):
        queue.apply("jobs/1", JobsChanged(cluster=1, type="claim.ended/1", data=ended, jobs=[]), 1)
    with pytest.raises(Unfit, match=r"JobHeld of job 1\.1, which is not in the queue"):
        queue.apply(
            "jobs/1",
            JobsChanged(cluster=1, type="job.held/1", data=msgspec.Raw(encode(HELD)), jobs=[Procs(0, 2, 1)]),
            1,
        )
