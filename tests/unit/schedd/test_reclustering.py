"""Attributes that become significant while jobs wait."""

from kettle_services.schedd.domain.negotiation.reclustering import mark_significant
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_wire.ads import Scalar
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

from .test_queue import AD


def submitted(queue: Queue, number: int, columns: list[str], rows: list[list[Scalar]]) -> None:
    event = ClusterSubmitted(cluster=number, owner="alice", ad=AD, columns=columns, rows=rows)
    queue.apply(f"cluster/{number}", event, 1)


def test_jobs_are_told_apart_by_what_machines_ask() -> None:
    """Those that wait at once, in whatever spelling; jobs that have no such attribute keep their number."""
    queue = Queue("ap")
    submitted(queue, 1, ["IsShort"], [[True], [False], [True]])
    submitted(queue, 2, ["Args"], [["a"], ["b"]])
    before = queue.autocluster(JobId(2, 0))
    assert [5] == [count for *_, count in queue.demand.requests("alice")]

    assert ["isshort"] == mark_significant(queue, ["ISSHORT", "isShort"])

    assert [2, 1, 2] == [count for *_, count in queue.demand.requests("alice")]
    assert before == queue.autocluster(JobId(2, 0)) == queue.autocluster(JobId(2, 1))
    assert queue.autocluster(JobId(1, 0)) == queue.autocluster(JobId(1, 2)) != queue.autocluster(JobId(1, 1))
    assert [] == mark_significant(queue, ["IsShort"])
