"""What falls due for a job by the clock alone."""

import math

import msgspec
import pytest

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.job_ad import JobAd
from kettle_services.starter import deadlines
from kettle_services.starter.deadlines import Deadlines
from kettle_services.starter.reports import endings
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


class Clock:
    """Stands at a time until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(deadlines, "boottime", clock)
    return clock


SPEC = JobSpec(
    key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="schedd", execute="/x", state="/y", slot="slot1", cpus=1,
    memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0, began=990.0, deadline=1100.0, sequence=0,
    kill_timeout=30.0, monitor_interval=5.0, measure_interval=300.0,
)  # fmt: skip


def test_a_lease_ends_a_job_at_once_and_is_never_shortened(clock: Clock) -> None:
    """Given a renewal, then the later deadline counts; when it has passed, the job is ended hard."""
    due = Deadlines(SPEC, JobAd({}))
    due.renew(1200.0)
    due.renew(1150.0)

    clock.now = 1199.9
    assert [] == list(due.over())
    clock.now = 1200.0
    assert [(endings.lost_lease(), True)] == list(due.over())


def test_a_job_has_limits_of_its_own(clock: Clock) -> None:
    """
    What its program may take counts from its start, and not while it is to be started again; what the attempt may take
    counts all the time.
    """
    ad = JobAd({"AllowedExecuteDuration": 20, "AllowedJobDuration": 60})
    due = Deadlines(msgspec.structs.replace(SPEC, deadline=math.inf), ad)
    due.runs()
    ours = [at for at, _ in endings.limits(ad, SPEC.began, clock.now)]
    assert [1020.0, 1050.0] == sorted(ours)

    clock.now = 1019.0
    assert [] == list(due.over())
    clock.now = 1020.0
    assert [False] == [hard for _, hard in due.over()]
    due.rests()
    assert [] == list(due.over())
    clock.now = 1050.0
    assert [False] == [hard for _, hard in due.over()]


def test_a_job_that_is_ended_has_its_time_once(clock: Clock) -> None:
    """Asked to end, it is killed when its time is over and not again; a lease counts no more then."""
    due = Deadlines(msgspec.structs.replace(SPEC, deadline=1001.0), JobAd({}))
    due.asked_to_end()
    assert (1005.0, 1001.0) == (due.next(ends=True), due.next(ends=False))
    assert not due.is_kill_due()
    clock.now = 1030.0
    assert [True, False] == [due.is_kill_due(), due.is_kill_due()]

    due.asked_to_end()
    due.killed()
    clock.now = 2000.0
    assert not due.is_kill_due()


def test_looks_and_measurements_have_their_pace(clock: Clock) -> None:
    """
    A look each few seconds, from when the last one was done; the first measurement soon, the others rarely.
    """
    due = Deadlines(SPEC, JobAd({}))
    assert not due.is_look_due()
    clock.now = 1007.0
    assert due.is_look_due()
    due.looked()
    assert 1012.0 == due.next(ends=True)

    clock.now = 1008.0
    assert [True, False] == [due.is_measurement_due(), due.is_measurement_due()]
    clock.now = 1308.0
    assert due.is_measurement_due()


def test_the_first_measurement_is_no_later_than_the_pause_between_two(clock: Clock) -> None:
    due = Deadlines(msgspec.structs.replace(SPEC, measure_interval=1.0), JobAd({}))
    clock.now = 1000.9
    assert not due.is_measurement_due()
    clock.now = 1001.0
    assert due.is_measurement_due()
