"""Whatever people and machines say, in whatever order: the queue keeps its promises."""

from hypothesis import given
from hypothesis import strategies as st

from kettle_services.schedd.domain.jobs.commands import (
    Assign,
    Begin,
    Checkpoint,
    Command,
    Continue,
    Disconnect,
    End,
    Hold,
    Reconnect,
    Release,
    Remove,
    Suspend,
)
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.factory import Factory
from kettle_services.schedd.domain.jobs.job import Job, evolve
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.domain.queue.rows import Change
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_wire.ads import Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobAssigned,
    JobCompleted,
    JobContinued,
    JobEvent,
    JobStarted,
    JobSuspended,
    JobVacated,
    Usage,
    encode,
    tag_of,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

attempts = st.integers(min_value=1, max_value=4)
claims = st.sampled_from(["a", "b", "c"])
commands: st.SearchStrategy[Command] = st.one_of(
    st.builds(Assign, claim=claims, slot=st.just("s"), startd=st.just("m")),
    st.builds(Begin, attempt=attempts, claim=claims, pid=st.just(1), at=st.just(1.0)),
    st.builds(Suspend, attempt=st.integers(1, 3), claim=claims, processes=st.just(2), at=st.just(2.0)),
    st.builds(Continue, attempt=st.integers(1, 3), claim=claims, at=st.just(3.0)),
    st.builds(Disconnect, attempt=attempts, claim=claims, reason=st.just("r")),
    st.builds(Reconnect, attempt=attempts, claim=claims),
    st.builds(
        Checkpoint,
        attempt=attempts,
        claim=claims,
        number=st.integers(1, 3),
        at=st.just(2.0),
        usage=st.just(Usage()),
    ),
    st.builds(
        End,
        attempt=attempts,
        claim=claims,
        result=st.just(AttemptResult(exit=ExitRecord(code=0, at=2.0), usage=Usage(wall=1.0))),
    ),
    st.builds(
        End,
        attempt=attempts,
        claim=claims,
        result=st.builds(
            AttemptResult,
            ending=st.builds(Ending, code=st.sampled_from([6, 1008, 1013, 1034]), reason=st.just("r")),
            exit=st.sampled_from([None, ExitRecord(code=3)]),
        ),
        cool_down=st.sampled_from([0.0, 20.0]),
    ),
    st.builds(Hold, reason=st.just("r"), by=st.just("alice"), code=st.sampled_from([1, 3])),
    st.builds(Release, reason=st.just("r"), by=st.just("alice")),
    st.builds(Remove, reason=st.just("r"), by=st.just("alice")),
)


def answer(job: Job, command: Command) -> list[JobEvent]:
    try:
        return decide(job, command)
    except Refused:
        return []


@given(st.lists(commands, max_size=40))
def test_attempts_never_overlap(said: list[Command]) -> None:
    """
    In the record of any job, an assignment is followed by the end of that attempt before the next assignment, attempts
    count up by one, and nothing follows a completion but what is said of the attempt that completed.
    """
    job, live, newest, still = Job(), 0, 0, False
    for command in said:
        for event in answer(job, command):
            match event:
                case JobAssigned(attempt=attempt):
                    assert (live, newest + 1) == (0, attempt)
                    live = newest = attempt
                case JobVacated(attempt=attempt) | JobCompleted(attempt=attempt):
                    assert attempt == live
                    live = 0
                case JobStarted(attempt=attempt):
                    assert attempt == live
                case JobSuspended(attempt=attempt) | JobContinued(attempt=attempt):
                    assert (attempt, still) == (live, isinstance(event, JobContinued))
                    still = not still
                case _:
                    pass
            job = evolve(job, event)
            still &= job.status == "running"
        assert (bool(job.claim), job.attempt.suspended) == (bool(live), still)


@given(st.lists(commands, max_size=30))
def test_what_is_repeated_at_once_records_nothing(said: list[Command]) -> None:
    """A worker's report or a person's command that is delivered twice is recorded once."""
    job = Job()
    for command in said:
        for event in answer(job, command):
            job = evolve(job, event)
        if not isinstance(command, Assign):
            assert [] == answer(job, command)


@given(st.lists(st.tuples(st.integers(0, 2), commands), max_size=40), st.integers(0, 40))
def test_a_working_set_and_the_tail_are_the_whole_history(said: list[tuple[int, Command]], cut: int) -> None:
    """
    A queue that was restored from the working set at any moment, and then folds the rest, equals one that folded it all.
    """
    submitted = ClusterSubmitted(
        cluster=1, owner="alice", ad={"Cmd": "x"}, columns=["Args"], rows=[["0"], ["1"], ["2"]]
    )
    history: list[tuple[str, Event]] = [("cluster/1", submitted)]
    queue, rows = Queue("ap"), dict[str, bytes]()
    at_cut: dict[str, bytes] | None = None

    def fold(stream: str, event: Event) -> None:
        for change in queue.apply(stream, event, 5_000_000):
            if change.state is None:
                rows.pop(change.stream, None)
            else:
                rows[change.stream] = change.state

    fold(*history[0])
    position = 1
    for proc, command in said:
        job = JobId(1, proc)
        entry = queue.jobs.get(job)
        for event in answer(entry.job, command) if entry else []:
            if len(history) == cut:
                at_cut, position = dict(rows), cut
            history.append((job_stream(job), event))
            fold(job_stream(job), event)
    if at_cut is None:
        at_cut, position = dict(rows), len(history)
    again = Queue("ap")
    restore(again, at_cut.items())
    for stream, later in history[position:]:
        again.apply(stream, later, 5_000_000)

    assert queue.jobs == again.jobs
    assert {j: queue.ad(j) for j in queue.jobs} == {j: again.ad(j) for j in again.jobs}
    assert queue.demand.requests("alice") == again.demand.requests("alice")


made = st.one_of(
    st.tuples(st.just("made"), st.integers(1, 3)),
    st.tuples(st.just("closed"), st.just(0)),
    st.tuples(st.integers(0, 4), commands),
)


@given(st.lists(made, max_size=40), st.integers(0, 40))
def test_a_factory_is_the_same_from_events_rows_and_replay(
    said: list[tuple[str, int] | tuple[int, Command]], cut: int
) -> None:
    """
    Whatever is made, ends or is given up: the queue of all events, that of the working set at any moment and the rest, and
    that of the replay are one, down to the rows that they would save.
    """
    rows: list[list[Scalar]] = [[str(number)] for number in range(5)]
    submitted = FactorySubmitted(
        cluster=1, owner="alice", ad={"Cmd": "x", "JobMaterializeLimit": 2}, columns=["Args"], rows=rows
    )
    queue, replay, saved, at_cut = Queue("ap"), Replay("ap"), dict[str, bytes](), dict[str, bytes]()
    again: Queue | None = None

    def record(stream: str, event: Event) -> None:
        nonlocal again, at_cut
        replay.feed(Frame("schedd.ap", 1, 1, 1, 5_000_000, [Entry(stream, 1, tag_of(event), encode(event))]))
        _keep(saved, queue.apply(stream, event, 5_000_000))
        if again is not None:
            _keep(at_cut, again.apply(stream, event, 5_000_000))

    record("cluster/1", submitted)
    for number, (what, how) in enumerate(said):
        if number == cut:
            again, at_cut = Queue("ap"), dict(saved)
            restore(again, at_cut.items())
        if isinstance(what, int) and not isinstance(how, int):
            entry = queue.jobs.get(job := JobId(1, what))
            for event in answer(entry.job, how) if entry else []:
                record(job_stream(job), event)
        elif (factory := queue.factory(1)) is not None and isinstance(how, int):
            record("factory/1", _of_factory(factory, made=how))
    assert picture(queue) == picture(replay.queue())
    if again is not None:
        assert (picture(queue), saved) == (picture(again), at_cut)


def picture(queue: Queue) -> object:
    """Everything that can be asked of a queue with a factory."""
    return (
        {job: (entry, queue.ad(job)) for job, entry in queue.jobs.items()},
        queue.unmade,
        queue.demand.requests("alice"),
        {number: (cluster.waiting, list(cluster.procs())) for number, cluster in queue.clusters.items()},
        present(queue),
    )


def _of_factory(factory: Factory, *, made: int) -> FactoryMaterialized | FactoryClosed:
    """So many more jobs, or none any more."""
    if made:
        return FactoryMaterialized(
            cluster=1, owner="alice", first=factory.made, count=min(made, factory.unmade)
        )
    return FactoryClosed(cluster=1, owner="alice", first=factory.made, count=factory.unmade)


def _keep(rows: dict[str, bytes], changes: list[Change]) -> None:
    for change in changes:
        if change.state is None:
            rows.pop(change.stream, None)
        else:
            rows[change.stream] = change.state


histories = st.lists(
    st.one_of(st.tuples(st.integers(0, 2), commands), st.sampled_from(["a", "b", "c"]), st.just(None)),
    max_size=60,
)


@given(histories)
def test_a_replay_is_the_queue_that_lived_through_it_all(
    said: list[tuple[int, Command] | str | None],
) -> None:
    """
    A queue that is made from its history at once equals one to which each event was applied, claims included.
    """
    queue, replay, clusters = Queue("ap"), Replay("ap"), 0

    def record(stream: str, event: Event) -> None:
        at = 5_000_000
        queue.apply(stream, event, at)
        entry = Entry(stream, 1, tag_of(event), encode(event))
        replay.feed(Frame("schedd.ap", 1, 1, 1, at, [entry]))

    for one in said:
        match one:
            case None:
                clusters += 1
                rows: list[list[Scalar]] = [["0"], ["1"], ["2"]]
                record(
                    f"cluster/{clusters}",
                    ClusterSubmitted(
                        cluster=clusters, owner="alice", ad={"Cmd": "x"}, columns=["Args"], rows=rows
                    ),
                )
            case str() if one in queue.claims:
                if queue.claims[one].job is None:
                    record(f"claim/{one}", ClaimEnded(claim=one, reason="r"))
            case str():
                granted = ClaimGranted(
                    claim=one, startd="m", slot="s", slot_ad={}, submitter="alice", autocluster=1, lease=1.0
                )
                record(f"claim/{one}", granted)
            case proc, command:
                job = JobId(clusters, proc)
                entry = queue.jobs.get(job)
                taken = isinstance(command, Assign) and (
                    command.claim not in queue.claims or queue.claims[command.claim].job is not None
                )
                for event in answer(entry.job, command) if entry and not taken else []:
                    record(job_stream(job), event)
    again = replay.queue()
    assert queue.jobs == again.jobs
    assert queue.claims == again.claims
    assert queue.clusters.keys() == again.clusters.keys()
    assert queue.newest_cluster == again.newest_cluster
    assert {j: queue.ad(j) for j in queue.jobs} == {j: again.ad(j) for j in again.jobs}
    assert queue.demand.requests("alice") == again.demand.requests("alice")
    assert present(queue) == present(again)


def present(queue: Queue) -> dict[str, int]:
    """How many jobs there are in each status."""
    return {status: count for status, count in queue.tally.by_submitter.get("alice", {}).items() if count}
