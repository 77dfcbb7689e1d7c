"""
Jobs that stay in the queue after their end: whatever is said of them, all who fold the record agree about who is there.
"""

from contextlib import suppress
from datetime import UTC

from hypothesis import example, given
from hypothesis import strategies as st

from kettle.audit.attempts import Attempts
from kettle.audit.report import AuditReport
from kettle.jobs.history import JobHistory
from kettle.userlog import Aborted, Terminated, parse
from kettle.userlog.projector import UserLogProjector
from kettle_services.schedd.domain.jobs.commands import (
    Assign,
    Begin,
    Command,
    End,
    Hold,
    Release,
    Remove,
    RemoveX,
)
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.leave_in_queue import release, settled
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_wire.ads import Expr, Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.events import ClusterSubmitted, Event, JobEdited, JobRemoved, Usage, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

WORDS = ("assign", "begin", "finish", "end", "hold", "release", "remove", "force", "look")


def command_of(word: str, state: Job, job: JobId) -> Command:
    """What somebody says of a job in this state: workers speak of its newest attempt."""
    attempt, claim = state.attempt.number, state.claim
    match word:
        case "assign":
            return Assign(claim=f"claim of {job}", slot="s", startd="m")
        case "begin":
            return Begin(attempt=attempt, claim=claim, pid=1, at=1.0)
        case "finish":
            usage = Usage(wall=1.0)
            return End(
                attempt=attempt,
                claim=claim,
                result=AttemptResult(exit=ExitRecord(code=0, at=2.0), usage=usage),
            )
        case "end":
            return End(
                attempt=attempt, claim=claim, result=AttemptResult(ending=Ending(code=1013, reason="r"))
            )
        case "hold":
            return Hold(reason="r", by="alice")
        case "release":
            return Release(reason="r", by="alice")
        case "remove":
            return Remove(reason="r", by="alice")
        case _:
            return RemoveX(reason="r", by="alice")


expressions: st.SearchStrategy[Scalar] = st.sampled_from(
    [True, False, "no truth value", Expr("JobStatus == 4"), Expr("JobStatus == 3"), Expr("time() < 20")]
)
said = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(st.sampled_from(WORDS), expressions.map(lambda value: (value,)))),
    min_size=8,
    max_size=60,
)


class World:
    """One queue, and everybody who reads what it records."""

    def __init__(self, leave: list[Scalar]) -> None:
        self.queue, self.replay, self.past = Queue("ap"), Replay("ap"), JobHistory("ap")
        self.report = AuditReport.empty()
        self.attempts = Attempts("schedd.ap", self.report, whole=True)
        self.logs = UserLogProjector("h:1", zone=UTC)
        self.rows, self.at, self.number, self.text = dict[str, bytes](), 1_000_000, 0, ""
        self.gone = set[JobId]()
        columns, rows = ["LeaveJobInQueue"], [[value] for value in leave]
        ad: dict[str, Scalar] = {"Cmd": "x", "Iwd": "/", "UserLog": "log"}
        submitted = ClusterSubmitted(cluster=1, owner="alice", ad=ad, columns=columns, rows=rows)
        self.record([("cluster/1", submitted)])

    def record(self, changes: list[tuple[str, Event]]) -> None:
        """As the ledger does it: one frame."""
        changes = settled(self.queue, changes, self.at)
        if not changes:
            return
        self.number += 1
        entries = [Entry(stream, 1, tag_of(event), encode(event)) for stream, event in changes]
        frame = Frame("schedd.ap", 1, self.number, 1, self.at, entries)
        for stream, event in changes:
            for change in self.queue.apply(stream, event, self.at):
                if change.state is None:
                    self.rows.pop(change.stream, None)
                else:
                    self.rows[change.stream] = change.state
            self.attempts.feed(stream, self.number, event)
        self.replay.feed(frame)
        self.past.feed(frame, [event for _, event in changes])
        self.text += "".join(line.text for line in self.logs.feed(frame))
        self.gone |= {one.job for one in self.past.apply_event().departed}

    def say(self, job: JobId, what: str | tuple[Scalar]) -> None:
        """A command, another LeaveJobInQueue, or that time goes by and the schedd looks."""
        entry, stream = self.queue.jobs.get(job), job_stream(job)
        if what == "look":
            self.at += 3_000_000
            for kept in sorted(self.queue.staying.kept):
                self.record([(job_stream(kept), e) for e in release(self.queue, kept, self.at / 1e6)])
        elif entry is None:
            pass
        elif isinstance(what, str):
            with suppress(Refused):
                command = command_of(what, entry.job, job)
                self.record([(stream, event) for event in decide(entry.job, command)])
        elif entry.job.kept or entry.job.status not in ("completed", "removed"):
            self.record([(stream, JobEdited(attributes={"LeaveJobInQueue": what[0]}, by="alice"))])


@example(
    [True, True], [(0, "assign"), (0, "finish"), (0, "begin")]
)  # a worker that is not done with a job that stays
@given(st.lists(expressions, min_size=2, max_size=2), said)
def test_all_agree_on_who_is_in_the_queue(
    leave: list[Scalar], said: list[tuple[int, str | tuple[Scalar]]]
) -> None:
    """
    The queue, the queue of the replay, that of the working set and the tables have the same jobs; each job is either in the
    queue or in the history; the audit finds nothing; the log of a job has one end; who has ended is offered to nobody.
    """
    world = World(leave)
    for proc, what in said:
        world.say(JobId(1, proc), what)
        queue = world.queue
        assert {JobId(1, proc) for proc in range(2)} == queue.jobs.keys() | world.gone
        assert not queue.jobs.keys() & world.gone
        kept = {job for job, entry in queue.jobs.items() if entry.job.ended}
        assert kept == queue.staying.kept
        assert all(queue.jobs[job].job.kept and queue.ad(job)["KeptInQueue"] is True for job in kept)
        live = sum(not entry.job.ended and entry.job.runnable for entry in queue.jobs.values())
        assert live == sum(count for *_, count in queue.demand.requests("alice"))
    again = Queue("ap")
    restore(again, world.rows.items())
    for other in (again, world.replay.queue()):
        assert world.queue.jobs == other.jobs
        assert world.queue.staying.kept == other.staying.kept
        assert {job: world.queue.ad(job) for job in world.queue.jobs} == {
            job: other.ad(job) for job in other.jobs
        }
    assert world.report.clean, world.report
    ends = [one.job for one in parse(world.text) if isinstance(one, Aborted | Terminated)]
    over = {job for job, entry in world.queue.jobs.items() if entry.job.ended} | world.gone
    assert sorted(over) == sorted(ends)


def test_a_literal_false_says_nothing() -> None:
    """Every submission has it, so it must cost nothing; an edit may say something later."""
    queue = Queue("ap")
    ad: dict[str, Scalar] = {"Cmd": "x", "LeaveJobInQueue": False}
    queue.apply("cluster/1", ClusterSubmitted(cluster=1, owner="alice", ad=ad, columns=[], rows=[[], []]), 1)
    assert set() == queue.staying.clusters
    queue.apply("job/1.0", JobEdited(attributes={"LeaveJobInQueue": True}, by="alice"), 1)
    assert {1} == queue.staying.clusters
    for proc in range(2):
        queue.apply(f"job/1.{proc}", JobRemoved(), 1)
    assert set() == queue.staying.clusters
