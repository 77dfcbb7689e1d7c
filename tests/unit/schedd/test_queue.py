"""The queue is a fold: of events, or of its own working set and the events after it."""

import msgspec
import pytest

from kettle_services.schedd.domain.jobs.commands import Assign, End, Hold
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.negotiation.autoclusters import Autoclusters
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.rows import NEWEST
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.queue.selection import listed
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, Event, Usage
from kettle_wire.jobs import JobId

AD: Ad = {"Cmd": "/bin/true", "RequestCpus": 1, "Requirements": Expr("TARGET.Memory >= RequestMemory")}


def cluster(
    number: int, rows: list[list[Scalar]], columns: list[str], owner: str = "alice"
) -> ClusterSubmitted:
    return ClusterSubmitted(cluster=number, owner=owner, ad=AD, columns=columns, rows=rows)


def granted(claim: str) -> ClaimGranted:
    return ClaimGranted(
        claim=claim,
        startd="m",
        slot="slot1_1@m",
        slot_ad={"Cpus": 1},
        submitter="alice",
        autocluster=1,
        lease=10.0,
    )


class Recorder:
    """Applies events to a queue and keeps its working set as the schedd does."""

    def __init__(self) -> None:
        self.queue = Queue("ap")
        self.rows: dict[str, bytes] = {}

    def apply(self, stream: str, *events: Event, at: int = 1) -> None:
        for event in events:
            for change in self.queue.apply(stream, event, at * 1_000_000):
                if change.state is None:
                    self.rows.pop(change.stream, None)
                else:
                    self.rows[change.stream] = change.state

    def run(self, job: JobId, claim: str, *, at: int = 1) -> None:
        self.apply(f"claim/{claim}", granted(claim))
        self.apply(job_stream(job), *decide(self.queue.jobs[job].job, Assign(claim, "slot1_1@m", "m")), at=at)

    def finish(self, job: JobId, claim: str) -> None:
        attempt = self.queue.jobs[job].job.attempt.number
        command = End(
            attempt=attempt,
            claim=claim,
            result=AttemptResult(exit=ExitRecord(code=0, at=1.0), usage=Usage(wall=1.0)),
        )
        self.apply(job_stream(job), *decide(self.queue.jobs[job].job, command))

    def restored(self) -> Queue:
        queue = Queue("ap")
        restore(queue, self.rows.items())
        return queue


def picture(queue: Queue) -> object:
    """Everything that can be asked of a queue."""
    return (
        {str(job): (entry.job, queue.ad(job)) for job, entry in queue.jobs.items()},
        {name: (c.granted, c.job) for name, c in queue.claims.items()},
        {s: [(str(job), a, n) for _, job, a, n in queue.demand.requests(s)] for s in ("alice", "bob")},
        {s: {k: n for k, n in t.items() if n} for s, t in queue.tally.by_submitter.items()},
    )


def test_the_working_set_restores_the_queue() -> None:
    """A queue that is read back from its rows answers everything as the one that wrote them."""
    recorder = Recorder()
    recorder.apply("cluster/1", cluster(1, [["a"], ["b"], ["c"]], ["Args"]))
    recorder.apply("cluster/2", cluster(2, [[1], [2]], ["RequestMemory"], owner="bob"))
    recorder.run(JobId(1, 0), "c1")
    recorder.run(JobId(1, 1), "c2")
    recorder.finish(JobId(1, 0), "c1")
    recorder.apply(job_stream(JobId(2, 1)), *decide(recorder.queue.jobs[JobId(2, 1)].job, Hold("no", "bob")))

    assert picture(recorder.queue) == picture(recorder.restored())


def test_a_finished_cluster_leaves_no_rows() -> None:
    """
    When its last job has left the queue, nothing of a cluster is loaded at the next start but that its number is taken.
    """
    recorder = Recorder()
    recorder.apply("cluster/1", cluster(1, [[]], []))
    recorder.run(JobId(1, 0), "c1")
    recorder.finish(JobId(1, 0), "c1")
    recorder.apply("claim/c1", ClaimEnded(claim="c1", reason="done"))

    assert ([NEWEST], {}) == (list(recorder.rows), recorder.queue.clusters)
    assert 1 == recorder.restored().newest_cluster


def test_jobs_come_in_order_of_priority_and_age() -> None:
    """A higher JobPrio goes first, then the older job."""
    queue = Queue("ap")
    queue.apply("cluster/1", cluster(1, [[0], [5], [5]], ["JobPrio"]), 0)
    (_, first, autocluster, count), *rest = queue.demand.requests("alice")

    assert (JobId(1, 1), 3, []) == (first, count, rest)
    (assigned,) = decide(queue.jobs[first].job, Assign("c", "s", "m"))
    queue.apply(job_stream(first), assigned, 0)
    assert JobId(1, 2) == queue.demand.next_job("alice", autocluster)


def test_jobs_that_a_machine_can_tell_apart_are_in_different_autoclusters() -> None:
    """A row that changes what Requirements looks at makes another autocluster, any other row does not."""
    queue = Queue("ap")
    queue.apply("cluster/1", cluster(1, [["x"], ["y"]], ["Args"]), 0)
    assert 1 == len(queue.demand.requests("alice"))
    queue.apply("cluster/2", cluster(2, [[100], [200], [200]], ["RequestMemory"]), 0)
    assert [2, 1, 2] == [count for *_, count in queue.demand.requests("alice")]


@pytest.mark.parametrize(
    ("ad", "column", "rows"),
    [
        ({}, "RequestLicences", [1, 4]),
        ({"RequireFPGAs": Expr("Family == MY.Want")}, "Want", ["Agilex", "Stratix"]),
        ({"RequestFPGAs": Expr("MY.Many"), "Many": Expr("2 * Few")}, "Few", [1, 2]),
        ({"Requirements": Expr("MY.Good"), "Good": Expr("TARGET.Site == Want")}, "Want", ["a", "b"]),
    ],
)
def test_what_jobs_ask_of_devices_tells_them_apart(ad: Ad, column: str, rows: list[Scalar]) -> None:
    """
    Any resource, also by way of other attributes: else a job would follow another on a slot that is none for it.
    """
    names = Autoclusters(ad, [column])

    assert names.of([rows[0]]) != names.of([rows[1]])
    assert names.of([rows[0]]) == Autoclusters({**ad, column: rows[0]}, []).of([])


def test_the_ad_shows_what_has_happened() -> None:
    """The ad of a running job has its submission's attributes and those that its events have set."""
    recorder = Recorder()
    recorder.apply("cluster/7", cluster(7, [["--n 3"]], ["Args"]))
    recorder.run(JobId(7, 0), "c1")
    ad = recorder.queue.ad(JobId(7, 0))

    assert (2, 7, 0, "--n 3", "slot1_1@m", "alice") == tuple(
        ad[name] for name in ("JobStatus", "ClusterId", "ProcId", "Args", "RemoteHost", "Owner")
    )


def test_a_job_was_renewed_when_it_began_or_later() -> None:
    """A worker may have renewed its claims before this job was given to one of them."""
    recorder = Recorder()
    recorder.apply("cluster/1", cluster(1, [["a"]], ["Args"]))
    recorder.run(JobId(1, 0), "c1", at=7)
    seen: list[object] = []
    for heard in (3, 9):
        recorder.queue.live.renewed["m"] = heard
        seen.append(recorder.queue.ad(JobId(1, 0))["LastJobLeaseRenewal"])
    assert [7, 9] == seen


def test_selections_keep_the_queue_order() -> None:
    """Listed jobs, whole clusters and owners add up; an empty selection is everything."""
    queue = Queue("ap")
    queue.apply("cluster/1", cluster(1, [[], []], []), 0)
    queue.apply("cluster/2", cluster(2, [[]], [], owner="bob"), 0)

    def select(**lists: list[JobId] | list[int] | list[str]) -> list[str]:
        full = msgspec.convert({"jobs": [], "clusters": [], "owners": [], **lists}, dict[str, list[object]])
        return [
            str(job)
            for job in listed(
                queue,
                jobs=msgspec.convert(full["jobs"], list[JobId]),
                clusters=msgspec.convert(full["clusters"], list[int]),
                owners=msgspec.convert(full["owners"], list[str]),
            )
        ]

    assert ["1.0", "1.1", "2.0"] == select()
    assert ["1.1", "2.0"] == select(jobs=[JobId(1, 1), JobId(9, 9)], owners=["bob"])
    assert ["1.0", "1.1"] == select(clusters=[1])


def test_a_cooling_job_is_offered_when_its_time_has_come() -> None:
    """A job that failed twice in a row is not asked for until it has cooled, also after a restart."""
    recorder, job = Recorder(), JobId(1, 0)
    recorder.apply("cluster/1", cluster(1, [[]], []))
    for number in (1, 2):
        recorder.run(job, f"c{number}")
        command = End(
            attempt=number,
            claim=f"c{number}",
            result=AttemptResult(ending=Ending(code=1007, reason="the starter died")),
            cool_down=20.0,
        )
        recorder.apply(job_stream(job), *decide(recorder.queue.jobs[job].job, command))

    for queue in (recorder.restored(), recorder.queue):
        assert ([], {job}) == (queue.demand.requests("alice"), queue.waiting.cooling)
        queue.cooled(job)
        assert [1] == [count for *_, count in queue.demand.requests("alice")]
        queue.cooled(job)
        assert [1] == [count for *_, count in queue.demand.requests("alice")]
