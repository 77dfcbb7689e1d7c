"""
However jobs are edited: the queue is the same from single events, from those of many, from its rows and from a replay.
"""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.jobs.commands import Hold, Release, Remove
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.negotiation.reclustering import mark_significant
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.grouped_events import group_events
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_services.schedd.domain.submission import job_edits
from kettle_services.schedd.domain.submission.job_edits import Edit
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.events import ClusterSubmitted, Event, JobEvent, encode, tag_of
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

JOBS: Final = 12
AT: Final = 5_000_000
ROWS: Final[list[list[Scalar]]] = [[number % 2, f"{number}"] for number in range(JOBS)]
submissions = st.sampled_from([
    ClusterSubmitted(
        cluster=1, owner="anna", ad={"Cmd": "x", "requestmemory": 5}, columns=columns, rows=ROWS
    )
    for columns in (["Blue", "Args"], ["JobPrio", "Args"], ["RequestDisk", "Args"])
])  # fmt: skip
values: st.SearchStrategy[Ad] = st.sampled_from([
    {"JobPrio": 3},
    {"JobPrio": -3},
    {"RequestMemory": 7},
    {"REQUESTMEMORY": 5},
    {"RequestDisk": 1},
    {"Requirements": Expr("TARGET.Memory > MY.Blue")},
    {"Blue": 4, "jobprio": 0},
])  # fmt: skip
commands = st.one_of(
    values,
    st.integers(-2, 2).filter(bool),
    st.sampled_from([Hold("r", "anna"), Release("r", "anna"), Remove("r", "anna")]),
)
said_of = st.lists(st.tuples(st.sets(st.integers(0, JOBS - 1), min_size=1), commands), max_size=12)


def single(queue: Queue, job: JobId, command: "Ad | int | Hold | Release | Remove") -> list[JobEvent]:
    """What a command comes to for one job."""
    if isinstance(command, dict | int):
        edit = (
            Edit(attributes={}, add_to_priority=command, by="anna")
            if isinstance(command, int)
            else Edit(attributes=command, by="anna")
        )
        job_edits.check(edit)
        ad = queue.ad(job)
        event = job_edits.decide(edit, ad, {name.lower(): name for name in ad}, queue.priority(job), 0)
        return [event] if event else []
    try:
        return decide(queue.jobs[job].job, command)
    except Refused:
        return []


def picture(queue: Queue) -> object:
    """Everything that edits may change."""
    return (
        {job: (entry, queue.ad(job), queue.priority(job)) for job, entry in queue.jobs.items()},
        {job: queue.autocluster(job) for job in queue.jobs},
        queue.demand.requests("anna"),
        queue.tally.by_submitter["anna"].get("idle", 0),
    )


@given(submissions, said_of)
def test_what_becomes_significant_counts_as_if_it_always_had(
    submitted: ClusterSubmitted, said: "list[tuple[set[int], Ad | int | Hold | Release | Remove]]"
) -> None:
    """Whatever was done to the jobs before: held ones and removed ones are in no demand, and edits count."""
    early, late = Queue("ap", significant=["Blue"]), Queue("ap")
    for queue in (early, late):
        queue.apply("cluster/1", submitted, AT)
        for procs, command in said:
            for job in [JobId(1, proc) for proc in sorted(procs) if JobId(1, proc) in queue.jobs]:
                for event in single(queue, job, command):
                    queue.apply(job_stream(job), event, AT)

    mark_significant(late, ["blue"])

    if early.jobs:
        assert picture(early) == picture(late)
    assert early.demand.requests("anna") == late.demand.requests("anna")


@given(submissions, said_of)
def test_edits_are_the_same_however_they_are_folded(
    submitted: ClusterSubmitted, said: "list[tuple[set[int], Ad | int | Hold | Release | Remove]]"
) -> None:
    """
    And what the queue offers are its idle jobs by their present priority, each with those that ask for the same.
    """
    one, many, replay, rows = Queue("ap"), Queue("ap"), Replay("ap"), dict[str, bytes]()
    versions: dict[JobId, int] = {}

    def record(stream: str, event: Event) -> None:
        replay.feed(Frame("schedd.ap", 1, 1, 1, AT, [Entry(stream, 1, tag_of(event), encode(event))]))
        for change in many.apply(stream, event, AT):
            if change.state is None:
                rows.pop(change.stream, None)
            else:
                rows[change.stream] = change.state

    one.apply("cluster/1", submitted, AT)
    record("cluster/1", submitted)
    for procs, command in said:
        jobs = [job for proc in sorted(procs) if (job := JobId(1, proc)) in one.jobs]
        happened = [(job, event) for job in jobs for event in single(one, job, command)]
        for stream, event in group_events(happened, lambda job: versions.get(job, 0) + 1, fewest=3):
            record(stream, event)
        for job, event in happened:
            versions[job] = versions.get(job, 0) + 1
            one.apply(job_stream(job), event, AT)
    if not one.jobs:
        return
    again = Queue("ap")
    restore(again, rows.items())
    assert picture(one) == picture(many) == picture(again) == picture(replay.queue())
    offered = {request[2]: request for request in one.demand.requests("anna")}
    idle = [job for job, entry in one.jobs.items() if entry.job == Job() or entry.job.status == "idle"]
    assert len(idle) == sum(count for *_, count in offered.values())
    for number, ((priority, _, _), first, _, count) in offered.items():
        alike = [job for job in idle if one.autocluster(job) == number]
        best = min(alike, key=lambda job: (-one.priority(job), job))
        assert (len(alike), best, -one.priority(best)) == (count, first, priority)
