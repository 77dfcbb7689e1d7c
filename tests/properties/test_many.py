"""What is recorded of many jobs at once is to everybody what its single events are."""

from collections.abc import Callable
from datetime import UTC
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kettle.audit.event_checks import Recorded, Walk
from kettle.audit.report import AuditReport
from kettle.eventsourcing.projection import decoded_events
from kettle.jobs.history import JobHistory
from kettle.userlog import UserLogProjector
from kettle_services.schedd.domain.jobs.commands import Assign, Command, End, Hold, Release, Remove
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.grouped_events import group_events
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.rows import Change
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.shadow.projections.mail import MailProjector
from kettle_services.simulator.domain.recording import Recording
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.event_expansion import expanded
from kettle_wire.events import ClusterSubmitted, Event, JobEvent, decode, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

JOBS = 6
AT = 1_700_000_000_000_000
acts = st.one_of(
    st.builds(Hold, reason=st.sampled_from(["r", "s"]), by=st.just("ann"), code=st.sampled_from([1, 3])),
    st.builds(Release, reason=st.just("r"), by=st.just("ann")),
    st.builds(Remove, reason=st.just("r"), by=st.just("ann")),
    st.builds(Assign, claim=st.just("c"), slot=st.just("s"), startd=st.just("m")),
    st.builds(
        End,
        attempt=st.integers(1, 3),
        claim=st.just("c"),
        result=st.just(AttemptResult(ending=Ending(code=1034, reason="r"))),
        cool_down=st.sampled_from([0.0, 20.0]),
    ),
)
steps = st.lists(st.tuples(st.sets(st.integers(0, 2 * JOBS - 1), min_size=1), acts), max_size=15)
columns = st.sampled_from([["Args"], ["RequestCpus"], ["JobPrio"], ["AcctGroup"], ["Requirements"]])


def answer(job: Job, command: Command) -> list[JobEvent]:
    try:
        return decide(job, command)
    except Refused:
        return []


def of_job(command: Command, job: JobId) -> Command:
    """Each job has a claim of its own."""
    match command:
        case Assign() | End():
            return msgspec.structs.replace(command, claim=f"c{job}")
        case _:
            return command


class Log:
    """The frames of a shard, and the newest version of each stream."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.versions: dict[str, int] = {}

    def add(self, changes: list[tuple[str, Event]]) -> Frame:
        entries: list[Entry] = []
        for stream, event in changes:
            version = self.versions[stream] = self.versions.get(stream, 0) + 1
            entries.append(Entry(stream, version, tag_of(event), encode(event)))
        position = self.frames[-1].head + 1 if self.frames else 1
        frame = Frame("schedd.ap", 1, len(self.frames) + 1, position, AT + len(self.frames), entries)
        for entry in expanded(frame).entries:
            self.versions[entry.stream] = entry.version
        self.frames.append(frame)
        return frame


class Saved:
    """A working set."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[int, bytes]] = {}

    def keep(self, changes: list[Change], version: int) -> None:
        for change in changes:
            if change.state is None:
                self.rows.pop(change.stream, None)
            else:
                self.rows[change.stream] = version, change.state


def fold(queue: Queue, saved: Saved, frame: Frame) -> None:
    for entry in frame.entries:
        saved.keep(queue.apply(entry.stream, decode(entry.data), frame.at), entry.version)


def picture(queue: Queue) -> dict[str, Any]:
    """Everything that can be asked of a queue."""
    submitters = sorted(queue.tally.owners)
    return {
        "jobs": {job: (entry, queue.ad(job)) for job, entry in queue.jobs.items()},
        "clusters": {number: (each.waiting, list(each.procs())) for number, each in queue.clusters.items()},
        "requests": [
            (one, queue.demand.requests(one), queue.tally.of_owner("ann"), queue.attendance.of(one))
            for one in submitters
        ],
        "tally": queue.tally.by_submitter,
        "claims": queue.claims,
        "cooling": queue.waiting.cooling,
        "deferred": queue.waiting.deferred,
    }


def lived(
    said: list[tuple[set[int], Command]], column: list[str], *, together: bool
) -> tuple[Log, Queue, Saved]:
    """Each command is decided for all of its jobs and recorded; `together`: as few events as it can be."""
    log, queue, saved = Log(), Queue("ap"), Saved()
    for cluster in (1, 2):
        rows: list[Any] = [
            [str(number) if column == ["AcctGroup"] else number // 2] for number in range(JOBS)
        ]
        ad: dict[str, Any] = {"Cmd": "x", "UserLog": "/l", "JobNotification": 1}
        submitted = ClusterSubmitted(cluster=cluster, owner="ann", ad=ad, columns=column, rows=rows)
        fold(queue, saved, log.add([(f"cluster/{cluster}", submitted)]))
    for numbers, command in said:
        jobs = [JobId(1 + number // JOBS, number % JOBS) for number in sorted(numbers)]
        changes = [
            (job, event)
            for job in jobs
            if (entry := queue.jobs.get(job)) is not None
            for event in answer(entry.job, of_job(command, job))[:1]
        ]
        version: Callable[[JobId], int] = lambda job: log.versions.get(job_stream(job), 0) + 1  # noqa: E731
        few: list[tuple[str, Event]] = [(job_stream(job), event) for job, event in changes]
        if together:
            few = group_events(changes, version, fewest=2)
        if few:
            fold(queue, saved, log.add(few))
    return log, queue, saved


@given(steps, columns)
def test_many_at_once_are_each_of_them(said: list[tuple[set[int], Command]], column: list[str]) -> None:
    """
    Commands are recorded in as few events as possible, and with one event for each job: the expansion of the one log is
    the other, and every fold comes to the same, and so do queues that are restored from the rows of both.
    """
    many, queue, saved = lived(said, column, together=True)
    single, other, rows = lived(said, column, together=False)
    assert [expanded(frame).entries for frame in many.frames] == [frame.entries for frame in single.frames]
    assert picture(other) == picture(queue)
    assert numbered(rows) == numbered(saved)
    again, once_more = restored(saved), restored(rows)
    assert picture(again) == picture(once_more)
    assert picture(again)["jobs"] == picture(queue)["jobs"]
    assert told(many) == told(single)


@given(steps, columns, st.integers(0, 15))
def test_a_working_set_has_what_many_have_in_common(
    said: list[tuple[set[int], Command]], column: list[str], cut: int
) -> None:
    """
    A queue that is restored at any moment and goes on is the one that went on, and so are the rows that it saves, and the numbers of the
    streams of its jobs.
    """
    log, queue, saved = lived(said[:cut], column, together=True)
    again = restored(saved)
    for frame in lived(said, column, together=True)[0].frames[len(log.frames) :]:
        rows = Saved()
        rows.rows = dict(saved.rows)
        fold(queue, saved, frame)
        fold(again, rows, frame)
        assert (picture(queue)["jobs"], saved.rows) == (picture(again)["jobs"], rows.rows)
    log, queue, saved = lived(said, column, together=True)
    for each in (queue, restored(saved)):
        numbers = {
            job: each.version(job) or saved.rows.get(job_stream(job), (0, b""))[0] for job in each.jobs
        }
        assert {job: log.versions.get(job_stream(job), 0) for job in queue.jobs} == numbers


def restored(saved: Saved) -> Queue:
    """The queue of a working set."""
    queue = Queue("ap")
    restore(queue, ((stream, state) for stream, (_, state) in saved.rows.items()))
    return queue


def numbered(saved: Saved) -> dict[str, tuple[int, bytes]]:
    """
    The rows that are none of jobs; what has left a cluster has the number of whatever was recorded last.
    """
    return {
        stream: (0 if "#" in stream else version, state)
        for stream, (version, state) in saved.rows.items()
        if not stream.startswith(("jobs/", "job/"))
    }


def told(log: Log) -> dict[str, Any]:
    """What everybody else makes of a log."""
    replay, past, report = Replay("ap"), JobHistory("ap"), AuditReport.empty()
    user_log, mails = UserLogProjector("127.0.0.1", zone=UTC), MailProjector("ap")
    walk = Walk("schedd.ap", report)
    recording = Recording(AT + 5, AT + 100, ["schedd.ap"])
    lines: list[Any] = []
    for frame in log.frames:
        replay.feed(frame)
        past.feed(*decoded_events(frame))
        lines += user_log.feed(frame)
        lines += mails.feed(frame)
        recording.feed(frame)
        for index, entry in enumerate(frame.entries):
            walk.feed(Recorded(frame.position + index, frame.number, 1, frame.at, entry))
    walk.finish()
    changes = past.apply_event()
    return {
        "replay": picture(replay.queue()),
        "history": changes.departed,
        "present": changes.present,
        "happened": changes.happened,
        "depth": changes.depth,
        "lines": lines,
        "problems": [each.sentence for check in report.checks for each in check.firsts],
        "period": [(one.at, one.stream, one.event) for one in recording.period().happenings],
    }
