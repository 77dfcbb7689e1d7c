"""Rows of the working set that are of many jobs, of clusters that need several of them."""

import msgspec

from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.shared_rows import PAGE
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobEvent,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobsChanged,
    Procs,
    encode,
    tag_of,
)
from kettle_wire.jobs import JobId

SIZE = 2 * PAGE + 100
HELD = JobHeld(code=1, reason="r", by="anna")
FREE = JobReleased(reason="r", by="anna")


class Saved:
    """A queue with one cluster, and its working set."""

    def __init__(self) -> None:
        self.queue = Queue("ap")
        self.rows: dict[str, bytes] = {}
        submitted = ClusterSubmitted(
            cluster=7, owner="anna", ad={"Cmd": "x"}, columns=["Args"], rows=[[str(n)] for n in range(SIZE)]
        )
        self.apply("cluster/7", submitted)

    def apply(self, stream: str, event: Event) -> list[str]:
        """Fold an event; the rows that it changes."""
        changes = self.queue.apply(stream, event, 5_000_000)
        for change in changes:
            if change.state is None:
                self.rows.pop(change.stream, None)
            else:
                self.rows[change.stream] = change.state
        return [change.stream for change in changes]

    def together(self, event: JobEvent, *jobs: Procs) -> list[str]:
        """Fold an event of many."""
        data = msgspec.Raw(encode(event))
        return self.apply("jobs/7", JobsChanged(cluster=7, type=tag_of(event), data=data, jobs=list(jobs)))

    def restored(self) -> Queue:
        """Another queue, of the rows."""
        queue = Queue("ap")
        restore(queue, self.rows.items())
        return queue


def versions(queue: Queue) -> list[int]:
    return [queue.version(JobId(7, proc)) for proc in range(SIZE)]


def test_what_happens_to_jobs_on_both_sides_of_a_page_is_in_both() -> None:
    """
    Only the rows of these pages are written, none of a job, and a restored queue has the jobs and their versions.
    """
    saved = Saved()
    assert ["jobs/7#0", "jobs/7#1", "jobs/7"] == saved.together(HELD, Procs(PAGE - 10, 20, 1))
    assert ["jobs/7#2", "jobs/7"] == saved.together(HELD, Procs(2 * PAGE, 100, 1))
    assert ["jobs/7#1", "jobs/7"] == saved.together(FREE, Procs(PAGE, 5, 2), Procs(PAGE + 7, 1, 2))
    again = saved.restored()
    assert saved.queue.jobs == again.jobs
    assert versions(saved.queue) == versions(again)
    assert 2 == again.version(JobId(7, PAGE + 7))
    assert {"held": 114, "idle": SIZE - 114} == again.tally.by_submitter["anna"]


def test_jobs_that_stay_alike_are_one_line() -> None:
    """However many events it took, a row is no longer than for the first of them."""
    saved = Saved()
    saved.together(HELD, Procs(0, 100, 1))
    first = len(saved.rows["jobs/7#0"])
    for start in range(100, PAGE, 4):
        saved.together(HELD, Procs(start, 4, 1))
    assert first + 4 >= len(saved.rows["jobs/7#0"])
    assert 1 == len({id(saved.queue.jobs[JobId(7, proc)]) for proc in range(PAGE)})


def test_a_row_of_a_single_job_counts_until_something_happens_to_many() -> None:
    """It is written by what is recorded of the job alone, and deleted by the next event of many."""
    saved, job = Saved(), JobId(7, 3)
    saved.together(HELD, Procs(0, 9, 1))
    assert [job_stream(job)] == saved.apply(job_stream(job), FREE)
    assert ("idle", "held") == tuple(saved.restored().jobs[JobId(7, proc)].job.status for proc in (3, 4))
    assert (0, 1) == tuple(saved.restored().version(JobId(7, proc)) for proc in (3, 4))
    again = saved.restored()
    assert [job_stream(job), "jobs/7#0", "jobs/7"] == saved.together(HELD, Procs(3, 1, 3))
    assert (3, 1) == tuple(saved.restored().version(JobId(7, proc)) for proc in (3, 4))
    assert saved.rows.keys().isdisjoint({job_stream(job)})
    data = msgspec.Raw(encode(HELD))
    changed = JobsChanged(cluster=7, type=tag_of(HELD), data=data, jobs=[Procs(3, 1, 3)])
    assert [job_stream(job), "jobs/7#0", "jobs/7"] == [
        change.stream for change in again.apply("jobs/7", changed, 5_000_000)
    ]


def test_rows_go_with_the_cluster() -> None:
    """Rows of jobs that left one by one stay until then, and say nothing of them."""
    saved = Saved()
    saved.together(HELD, Procs(0, SIZE, 1))
    saved.apply(job_stream(JobId(7, 5)), JobRemoved(by="anna"))
    assert JobId(7, 5) not in saved.restored().jobs
    assert SIZE - 1 == len(saved.restored().jobs)
    saved.together(JobRemoved(by="anna"), Procs(0, 5, 2), Procs(6, SIZE - 6, 2))
    assert {"cluster#newest"} == saved.rows.keys()
    assert (0, set()) == (len(saved.queue.jobs), saved.queue.changed_together)
