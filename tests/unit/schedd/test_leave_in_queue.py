"""What keeps a job in the queue after its end, and what it counts for there."""

import pytest

from kettle_services.schedd.domain.jobs.commands import Remove, RemoveX
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.leave_in_queue import keeps, settled
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    FactorySubmitted,
    JobAssigned,
    JobCompleted,
    JobKept,
    JobLeft,
    JobRemoved,
)

AT = 7_000_000


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        (None, False), (False, False), (True, True), (0, False), (1, True), (0.0, False), ("true", False),
        (Expr("undefined"), False), (Expr("error"), False), (Expr("NoSuchThing > 1"), False),
        (Expr("JobStatus == 4"), True), (Expr("JobStatus == 3"), False),
        (Expr("time() - EnteredCurrentStatus < 3"), True), (Expr("time() - EnteredCurrentStatus < 2"), False),
        (Expr("(CurrentTime - CompletionDate) < 1800"), True),
    ],
)  # fmt: skip
def test_only_what_is_true_keeps_a_job(said: Scalar | None, stays: bool) -> None:
    """At second 7, of a job that completed at second 5."""
    ad: Ad = {"JobStatus": 4, "EnteredCurrentStatus": 5, "CompletionDate": 5}
    if said is not None:
        ad["leavejobinqueue"] = said
    assert stays == keeps(ad, AT / 1e6)


def queue_of(*changes: tuple[str, Event]) -> tuple[Queue, list[type[Event]]]:
    """A queue, and the events that it recorded, each of these being one record."""
    queue, recorded = Queue("ap"), list[type[Event]]()
    for change in changes:
        for stream, event in settled(queue, [change], AT):
            queue.apply(stream, event, AT)
            recorded.append(type(event))
    return queue, recorded


ASSIGNED = JobAssigned(attempt=1, claim="c", slot="s", startd="m")
COMPLETED = JobCompleted(attempt=1, exit=ExitRecord(code=0))


def test_a_job_that_stays_takes_a_place_in_the_queue() -> None:
    """It counts for its owner and for max_materialize, not for max_idle, and is offered to nobody."""
    ad: Ad = {"Cmd": "x", "LeaveJobInQueue": Expr("JobStatus == 4"), "JobMaterializeMaxIdle": 1}
    queue, recorded = queue_of(
        ("cluster/1", FactorySubmitted(cluster=1, owner="alice", ad=ad, columns=[], rows=[[], [], []])),
        ("factory/1", FactoryMaterialized(cluster=1, owner="alice", first=0, count=2)),
        ("job/1.0", ASSIGNED),
        ("job/1.0", COMPLETED),
    )
    assert [JobAssigned, JobKept, JobCompleted] == recorded[2:]
    cluster = queue.clusters[1]
    assert (2, 2, 1) == (queue.tally.of_owner("alice").total(), cluster.present, cluster.waiting)
    assert {"idle": 1, "completed": 1} == {s: n for s, n in queue.tally.by_submitter["alice"].items() if n}
    assert [1] == [count for *_, count in queue.demand.requests("alice")]


def test_a_completed_job_that_is_removed_is_looked_at_again() -> None:
    """Its expression is about completed jobs alone, so it leaves in the same record."""
    ad: Ad = {"Cmd": "x", "LeaveJobInQueue": Expr("JobStatus == 4")}
    queue, recorded = queue_of(
        ("cluster/1", ClusterSubmitted(cluster=1, owner="alice", ad=ad, columns=[], rows=[[]])),
        ("job/1.0", ASSIGNED),
        ("job/1.0", COMPLETED),
        ("job/1.0", JobRemoved(reason="r")),
    )
    assert [JobRemoved, JobLeft] == recorded[-2:]
    assert {} == queue.jobs
    assert {} == queue.clusters


def test_only_removed_jobs_are_forced() -> None:
    """One that completed and stays is removed first; what is said twice is recorded once."""
    ad: Ad = {"Cmd": "x", "LeaveJobInQueue": True}
    queue, _ = queue_of(
        ("cluster/1", ClusterSubmitted(cluster=1, owner="alice", ad=ad, columns=[], rows=[[], []])),
        ("job/1.0", ASSIGNED),
        ("job/1.0", COMPLETED),
        ("job/1.1", assigned_on("d")),
        ("job/1.1", JobRemoved(reason="r")),
    )
    states = [entry.job for _, entry in sorted(queue.jobs.items())]
    force = RemoveX(reason="x", by="alice")
    with pytest.raises(Refused, match="the job is completed"):
        decide(states[0], force)
    assert [JobRemoved(reason="r", by="alice")] == decide(states[0], Remove(reason="r", by="alice"))
    assert [JobLeft(reason="x", by="alice")] == decide(states[1], force)
    queue.apply("job/1.1", JobLeft(reason="x", by="alice"), AT)
    ((_, later),) = [one for one in queue.jobs.items() if one[1].job.claim]
    assert [] == decide(later.job, force)


def assigned_on(claim: str) -> JobAssigned:
    """An assignment on another claim."""
    return JobAssigned(attempt=1, claim=claim, slot="s", startd="m")
