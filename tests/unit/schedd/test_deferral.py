"""Jobs that start at a time of their own, in the queue."""

import asyncio
import time

import pytest

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.testing.patience import PATIENCE_S
from kettle_services.schedd.domain.jobs.attempt import AttemptPhase, AttemptState
from kettle_services.schedd.domain.jobs.commands import Assign
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.deferral import Move, Senseless, Wait, plan, settled, timed
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.orders import Defer
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs import deferrals
from kettle_services.schedd.jobs.deferrals import Deferrals
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import ClusterSubmitted, JobAssigned, JobDeferred, JobVacated, Usage
from kettle_wire.jobs import JobId

NOW = 1_700_000_030
MINUTE = 1_700_000_040
"""The first full minute after NOW."""
JOB = JobId(1, 0)


@pytest.mark.parametrize(
    ("ad", "expected"),
    [
        ({"DeferralTime": NOW + 5000}, Wait(NOW + 5000 - 600)),
        ({"DeferralTime": NOW + 5000, "DeferralPrepTime": 10, "ScheddInterval": 0}, Wait(NOW + 4990)),
        ({"DeferralTime": Expr("time() + 700")}, Wait(NOW + 100)),
        ({"DeferralTime": NOW - 5}, Wait(NOW - 605)),
        ({"DeferralTime": "tomorrow"}, Wait(0)),
        ({"CronMinute": "*"}, Move(MINUTE)),
        ({"CronMinute": "*", "DeferralTime": MINUTE}, Wait(MINUTE - 600)),
        ({"CronMinute": "*", "DeferralTime": NOW - 10, "DeferralWindow": 20}, Wait(NOW - 610)),
        ({"CronMinute": "*", "DeferralTime": NOW - 10, "DeferralWindow": 10}, Move(MINUTE)),
        ({"CronMinute": "*", "DeferralTime": NOW - 10, "DeferralWindow": 90, "JobCurrentStartExecutingDate": NOW - 10},
         Move(MINUTE)),
        ({"CronMinute": "*", "DeferralTime": MINUTE, "DeferralWindow": Expr("5 - 705")}, Wait(MINUTE - 600)),
        ({"CronMinute": "*", "DeferralTime": MINUTE, "JobCurrentStartExecutingDate": MINUTE + 1}, Move(MINUTE + 60)),
    ],
)  # fmt: skip
def test_plan(ad: Ad, expected: Wait | Move) -> None:
    """
    A job is offered in time for its preparation; one of the calendar gets its next time when the last one is used or over.
    """
    assert expected == plan(ad, NOW)


@pytest.mark.parametrize(
    "ad", [{"CronMinute": "61"}, {"CronMinute": 61}, {"CronDayOfMonth": "31", "CronMonth": "2"}]
)
def test_a_calendar_without_days(ad: Ad) -> None:
    """Settings that name no time are reported, and the job does not wait endlessly."""
    assert isinstance(plan(ad, NOW), Senseless)


def test_only_what_names_a_time_is_timed() -> None:
    """Jobs without such attributes are not looked at."""
    assert [True, True, False] == [
        timed(names) for names in (["deferraltime"], ["CRONHOUR"], ["DeferralWindow"])
    ]


def test_expressions_are_settled() -> None:
    """
    Who runs the job is told numbers; what cannot be evaluated stays, and an ad without such expressions is the same.
    """
    ad: Ad = {"DeferralTime": Expr("time() + 5"), "DeferralWindow": Expr("nowhere")}
    plain: Ad = {"DeferralTime": 7}
    assert {"DeferralTime": NOW + 5, "DeferralWindow": Expr("nowhere")} == settled(ad, NOW)
    assert settled(plain, NOW) is plain


def test_an_offer_is_made_when_it_is_due_and_taken_back_when_time_moves() -> None:
    """
    A job is not among those that may run until its time; a new time takes it out again, and being held for good.
    """
    queue = Queue("schedd")
    queue.apply(
        "cluster/1",
        ClusterSubmitted(cluster=1, owner="anna", ad={"CronMinute": "*"}, columns=[], rows=[[]]),
        1,
    )
    assert [] == queue.demand.requests("anna")
    queue.due(JOB)
    assert [JOB] == [request[1] for request in queue.demand.requests("anna")]
    (event,) = decide(queue.jobs[JOB].job, Defer(MINUTE))
    queue.apply("job/1.0", event, 2)
    assert ([], {JOB: False}) == (queue.demand.requests("anna"), queue.waiting.deferred)
    assert MINUTE == queue.ad(JOB)["DeferralTime"]


def test_the_next_time_of_a_job_that_cooled_down_is_not_missed() -> None:
    """
    It failed, waited, and missed its time: it waits for the next one and is offered then, and does not wait endlessly
    for the first one.
    """
    queue = Queue("schedd")
    queue.apply(
        "cluster/1",
        ClusterSubmitted(cluster=1, owner="anna", ad={"CronMinute": "*"}, columns=[], rows=[[]]),
        1,
    )
    for event in (
        JobAssigned(attempt=1, claim="c", slot="s", startd="n"),
        JobVacated(
            attempt=1, ending=Ending(code=1026, reason="no such program"), usage=Usage(), cool_down=300.0
        ),
    ):
        queue.apply("job/1.0", event, 2)
    assert ({JOB}, {}) == (queue.waiting.cooling, queue.waiting.deferred)
    queue.cooled(JOB)

    (deferred,) = decide(queue.jobs[JOB].job, Defer(MINUTE))
    queue.apply("job/1.0", deferred, 3)

    assert (set(), {JOB: False}) == (queue.waiting.cooling, queue.waiting.deferred)
    queue.due(JOB)
    assert [JOB] == [request[1] for request in queue.demand.requests("anna")]


def test_a_running_job_is_not_deferred() -> None:
    """The time of a job that has begun does not move."""
    assert [JobDeferred(until=5)] == decide(Job(), Defer(5))
    assert [] == decide(Job("running", AttemptState(1, AttemptPhase.STARTING, "c")), Defer(5))
    assert decide(Job(), Assign(claim="c", slot="s", startd="n"))


async def test_a_job_is_looked_at_when_it_begins_to_wait_and_when_it_is_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What happens to others costs it nothing; one whose time has come is offered."""
    looked: list[object] = []

    def noted(ad: Ad, now: float) -> Wait | Move | Senseless | ExitRecord:
        looked.append(ad["DeferralTime"])
        return plan(ad, now)

    monkeypatch.setattr(deferrals, "plan", noted)
    log, queue, offered = MemoryLog(), Queue("ap"), list[str]()
    async with Shard.own(log, "schedd.ap", owner="me") as shard:
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        clock = Deferrals(recorder, lambda: offered.append("now"))
        later, soon = int(time.time()) + 10_000, int(time.time()) + 1
        for cluster, at in ((1, later), (2, later + 1), (3, soon)):
            ad: Ad = {"DeferralTime": at}
            queue.apply(
                f"cluster/{cluster}",
                ClusterSubmitted(cluster=cluster, owner="anna", ad=ad, columns=[], rows=[[]]),
                cluster,
            )
        assert soon <= await clock.handle_due() - 59.0 <= soon + 60
        assert ([later, later + 1, soon], ["now"]) == (looked, offered)
        looked.clear()
        await clock.handle_due()
        (event,) = decide(queue.jobs[JOB].job, Defer(later + 5))
        queue.apply("job/1.0", event, 4)
        assert later - 595 > await clock.handle_due()
        assert [later + 5] == looked
        monkeypatch.setattr(time, "time", lambda: float(later))
        await clock.handle_due()
        assert (sorted([later + 5, later + 1, soon], key=str), 3) == (
            sorted(looked[1:], key=str),
            len(offered),
        )


async def test_a_job_that_has_cooled_is_offered_at_once() -> None:
    """Its time has long come: nothing else need happen to the queue before it is seen."""
    log, queue, offered = MemoryLog(), Queue("ap"), asyncio.Event()
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        clock = Deferrals(recorder, offered.set)
        recorder.on_cooldown_over(clock.wake)
        for stream, event in (
            (
                "cluster/1",
                ClusterSubmitted(cluster=1, owner="anna", ad={"DeferralTime": NOW}, columns=[], rows=[[]]),
            ),
            ("job/1.0", JobAssigned(attempt=1, claim="c", slot="s", startd="n")),
            ("job/1.0", JobVacated(attempt=1, ending=Ending(code=1007, reason=""), cool_down=0.05)),
        ):
            queue.apply(stream, event, 1)
        assert ({JOB}, {}) == (queue.waiting.cooling, queue.waiting.deferred)
        running = tasks.create_task(clock.watch_times())
        await asyncio.sleep(0)
        recorder.start_cooldown(JOB)
        async with asyncio.timeout(PATIENCE_S):
            await offered.wait()
        running.cancel()
    assert [JOB] == [request[1] for request in queue.demand.requests("anna")]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"IsNoopJob": True}, ExitRecord(code=0, at=NOW)),
        ({"IsNoopJob": Expr("ProcId == 3"), "ProcId": 3, "NoopJobExitCode": 7}, ExitRecord(code=7, at=NOW)),
        ({"IsNoopJob": True, "NoopJobExitSignal": 9}, ExitRecord(signal=9, at=NOW)),
        ({"IsNoopJob": True, "NoopJobExitSignal": 9, "NoopJobExitCode": 0}, ExitRecord(code=0, at=NOW)),
        ({"IsNoopJob": False}, Wait(0)),
        ({"IsNoopJob": Expr("Nothing")}, Wait(0)),
    ],
)
def test_a_job_for_no_machine_is_over(said: Ad, expected: ExitRecord | Wait) -> None:
    """As it says; one that is for a machine after all waits for nothing."""
    assert timed(said)
    assert expected == plan(said, NOW)
