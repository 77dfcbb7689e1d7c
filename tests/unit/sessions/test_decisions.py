"""What follows from what happens to a session."""

import pytest

from kettle_services.sessions.domain.ages import next_time
from kettle_services.sessions.domain.decisions import SHORT_RUNS, Heard
from kettle_wire.codes import HoldCode
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveMembersRefused,
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    InteractiveRestarted,
    InteractiveSchedulerSeen,
    InteractiveStateChanged,
    MemberChange,
)
from kettle_wire.sessions import SessionAdapt, SessionKind, SessionTarget

from .one_session import OneSession, created


def ready(one: OneSession, *, site: str = "") -> OneSession:
    """With its head running and known, and all workers that are wanted."""
    one.start_all(site=site)
    one.settle([InteractiveSchedulerSeen(contact="kettle://1.0/dask")])
    one.start_all(site=site)
    assert one.session.state == "ready"
    return one


def state(one: OneSession) -> str:
    return one.session.state


def wants(one: OneSession, workers: int) -> None:
    target = SessionTarget(workers=workers)
    one.settle([InteractiveChanged(target=target, by="ann", what=f"{workers} workers")])
    one.carry_out()


def head_of(one: OneSession) -> int:
    [number] = [n for n, each in one.session.members.items() if each.role == "head" and not each.ending]
    return number


def test_a_program_is_requested_queued_starting_ready() -> None:
    one = OneSession(created("process"))
    states = [one.session.state]
    one.carry_out()
    states.append(one.session.state)
    one.happens(1, "matched")
    states.append(one.session.state)
    one.happens(1, "running")
    assert ["requested", "queued", "starting", "ready"] == [*states, one.session.state]


def test_why_it_waits_is_decided_with_what_makes_it_wait() -> None:
    """No time passes between a cause and its sentence: they are events of one decision."""
    refused = OneSession(created("process"))
    submitted = OneSession(created("process"))
    held = OneSession(created("process"))
    held.carry_out()
    change = MemberChange(1, "held", reason="there is no image", code=HoldCode.InvalidDockerImage)
    for one, cause, sentence in (
        (refused, InteractiveMembersRefused(batch=1, code="limit", reason="too many"), "too many"),
        (submitted, InteractiveMembersSubmitted(frame=1, batch=1, cluster=7), "waits as job 7.0"),
        (held, InteractiveMembersSeen(frame=9, changes=[change]), "there is no image"),
    ):
        first, *_, last = one.settle([cause])
        assert (cause, "queued") == (first, one.session.state)
        assert isinstance(last, InteractiveStateChanged)
        assert sentence in last.reason


def test_workers_wait_for_their_head_and_run_at_its_site() -> None:
    one = OneSession(created(workers=3))
    one.carry_out()
    assert not one.workers
    one.starts(1, site="T2_X")
    assert 3 == len(one.workers)
    assert "T2_X" == one.session.site
    assert "starting" == state(one)
    one.settle([InteractiveSchedulerSeen(contact="kettle://1.0/dask")])
    assert "ready" == state(one)


def test_workers_that_are_spread_have_no_site() -> None:
    one = OneSession(created(workers=1, spread=True))
    one.carry_out()
    one.starts(1, site="T2_X")
    assert "" == one.session.site


def test_a_worker_that_ends_is_replaced_and_the_session_says_so() -> None:
    one = ready(OneSession(created(workers=2)))
    one.happens(min(one.workers), "gone", exit_code=-9)
    assert "degraded" == state(one)
    one.start_all()
    assert ("ready", 2, 1) == (state(one), len(one.workers), one.session.lost)


def test_a_worker_that_loses_its_machine_runs_again_as_the_same_job() -> None:
    one = ready(OneSession(created(workers=1)))
    before = one.session.workers
    one.happens(min(one.workers), "idle")
    assert before.keys() == one.session.workers.keys()
    assert "degraded" == state(one)
    one.start_all()
    assert "ready" == state(one)


def test_a_scheduler_that_has_to_leave_its_machine_says_why_and_what_is_lost() -> None:
    """In the words of the record, until the same job runs again."""
    one = ready(OneSession(created()))
    head = head_of(one)
    change = MemberChange(head, "idle", reason="somebody has a better priority in the pool")
    one.settle([InteractiveMembersSeen(frame=99, changes=[change])])
    assert (
        "its scheduler was lost (somebody has a better priority in the pool), and with it what was computed; it waits as job "
        f"{one.session.members[head].job} to run again"
    ) == one.session.reason
    assert "degraded" == state(one)


def test_what_waits_goes_first_when_fewer_are_wanted() -> None:
    one = ready(OneSession(created(workers=2)))
    wants(one, 4)
    wants(one, 2)
    assert not one.removed_while_running
    assert ["running"] * 2 == [each.status for each in one.session.workers.values()]


def test_only_a_worker_that_holds_nothing_is_ended() -> None:
    one = ready(OneSession(created(workers=3)))
    jobs = [each.job for each in one.workers.values()]
    one.heard = Heard(workers={jobs[0]: 1.0, jobs[1]: 60.0, jobs[2]: 2.0})
    wants(one, 2)
    [retiring] = [each for each in one.session.workers.values() if each.retiring]
    assert jobs[1] == retiring.job, "the one that has had nothing to do for longest"
    assert 4 == len(one.jobs)
    one.heard = Heard(retired=frozenset({jobs[1]}))
    one.settle()
    one.carry_out()
    assert jobs[1] not in one.jobs
    assert "ready" == state(one), "it is not one that was lost"


def test_a_worker_that_does_not_hand_over_is_ended_after_its_grace_time() -> None:
    one = ready(OneSession(created(workers=1)))
    wants(one, 0)
    assert one.now + 60.0 == next_time(one.session)
    one.passes(59.0)
    one.carry_out()
    assert 2 == len(one.jobs)
    one.passes(1.0)
    one.carry_out()
    assert 1 == len(one.jobs)


def test_a_scheduler_has_its_way_within_what_it_may() -> None:
    one = ready(OneSession(created(adapt=SessionAdapt(minimum=1, maximum=5))))
    assert 1 == one.session.target.workers
    one.heard = Heard(target=9)
    one.settle()
    assert 5 == one.session.target.workers
    one.heard = Heard(target=0)
    one.settle()
    assert 1 == one.session.target.workers


def test_a_wish_for_which_nothing_can_be_done_is_not_recorded() -> None:
    """A scheduler says another number each second; until there can be workers, the last one counts."""
    one = OneSession(created(adapt=SessionAdapt(minimum=1, maximum=9)))
    before = len(one.log)
    for target in (4, 5, 4, 7):
        one.heard = Heard(target=target)
        one.settle()
    assert before == len(one.log)
    ready(one)
    assert 7 == one.session.target.workers


def test_a_worker_has_a_successor_before_its_time_is_over() -> None:
    one = ready(OneSession(created(workers=1, worker_life=4_000.0)))
    old = min(one.workers)
    due = next_time(one.session)
    assert due is not None
    one.passes(due - one.now)
    assert old not in one.workers
    assert 1 == len(one.workers)
    assert not one.session.members[old].retiring, "it works until the other one runs"
    one.start_all()
    assert one.session.members[old].retiring
    one.heard = Heard(retired=frozenset({one.session.members[old].job}))
    one.settle()
    one.carry_out()
    assert old not in one.session.members
    assert 0 == one.session.lost


def test_a_worker_goes_when_its_time_is_over_although_no_successor_runs() -> None:
    one = ready(OneSession(created(workers=1, worker_life=4_000.0)))
    old = min(one.workers)
    started = one.session.members[old].started
    one.passes((next_time(one.session) or 0.0) - one.now)
    one.passes(started + 4_000.0 - 60.0 - one.now)
    assert one.session.members[old].retiring


@pytest.mark.parametrize(
    ("kind", "exit_code", "outcome"),
    [
        ("process", 0, "completed"),
        ("process", 3, "failed"),
        ("notebook", 0, "completed"),
        ("dask", 0, "completed"),
    ],
)
def test_a_session_ends_with_its_program(kind: SessionKind, exit_code: int, outcome: str) -> None:
    one = OneSession(created(kind, workers=0))
    one.start_all()
    one.happens(1, "gone", exit_code=exit_code)
    one.carry_out()
    assert ("ended", outcome) == (state(one), one.session.outcome)


def test_a_scheduler_that_is_killed_is_started_again_and_workers_stay() -> None:
    one = ready(OneSession(created(workers=2)))
    one.passes(100.0)
    workers = one.workers.keys()
    one.happens(head_of(one), "gone", exit_code=-9, reason="its program has ended with signal 9")
    assert "degraded" == state(one)
    assert "signal 9" in one.session.reason
    one.start_all()
    one.settle([InteractiveSchedulerSeen(contact="kettle://9.0/dask")])
    assert ("ready", workers) == (state(one), one.workers.keys())


def test_a_program_that_ends_at_once_again_and_again_ends_the_session() -> None:
    one = OneSession(created())
    for _ in range(SHORT_RUNS):
        one.start_all()
        one.happens(head_of(one), "gone", exit_code=-11, reason="its program has ended with signal 11")
        one.passes(200.0)
    one.carry_out()
    assert ("ended", "failed") == (state(one), one.session.outcome)
    assert "signal 11" in one.session.over
    assert not one.jobs


def test_who_removes_the_head_stops_the_session() -> None:
    one = ready(OneSession(created(workers=2)))
    one.happens(head_of(one), "gone", removed_by="ann", reason="via condor_rm")
    one.carry_out()
    assert ("ended", "stopped") == (state(one), one.session.outcome)
    assert not one.jobs


def test_a_restart_begins_with_new_jobs() -> None:
    one = ready(OneSession(created(workers=2)))
    before = set(one.jobs)
    one.settle([InteractiveRestarted(by="ann")])
    one.start_all()
    one.settle([InteractiveSchedulerSeen(contact="kettle://9.0/dask")])
    one.start_all()
    assert before.isdisjoint(one.jobs)
    assert ("ready", 3, 1) == (state(one), len(one.jobs), one.session.restarts)


def test_a_held_member_says_why_and_is_released_later_and_later() -> None:
    one = OneSession(created())
    one.carry_out()
    one.happens(1, "held", reason="no such image")
    assert ("queued", True) == (state(one), "no such image" in one.session.reason)
    one.passes(4.0)
    one.carry_out()
    assert {"held"} == set(one.jobs.values())
    one.passes(1.0)
    one.carry_out()
    assert {"idle"} == set(one.jobs.values())
    one.happens(1, "held", reason="no such image")
    assert one.now + 10.0 == next_time(one.session)
    one.passes(10.0)
    one.start_all()
    assert "starting" == state(one), "the image is there, and nobody has asked again"


def test_what_a_person_holds_stays_held() -> None:
    one = OneSession(created())
    one.carry_out()
    one.happens(1, "held", reason="via condor_hold", code=HoldCode.UserRequest)
    assert next_time(one.session) is None


def test_what_is_refused_is_ordered_again_when_the_cause_is_gone() -> None:
    one = OneSession(created())
    one.refuse = "too many jobs of ann"
    one.carry_out()
    assert ("queued", True) == (state(one), "too many jobs of ann" in one.session.reason)
    assert not one.session.members
    one.refuse = ""
    one.passes((next_time(one.session) or 0.0) - one.now)
    one.carry_out()
    assert ("queued", 1) == (state(one), len(one.jobs))


def test_life_and_idle_time_end_it() -> None:
    one = OneSession(created("process", life=100.0))
    one.start_all()
    one.passes(100.0)
    one.carry_out()
    assert "expired" == one.session.outcome
    other = ready(OneSession(created(idle=60.0)))
    other.heard = Heard(idle_since=other.now)
    other.passes(59.0)
    assert not other.session.closing
    other.passes(1.0)
    other.carry_out()
    assert ("ended", "idle") == (other.session.state, other.session.outcome)


def test_what_was_ordered_before_the_end_is_removed_after_it_was_submitted() -> None:
    one = OneSession(created())
    one.settle([InteractiveClosing(outcome="stopped", reason="stopped by ann", by="ann")])
    assert "stopping" == state(one)
    one.carry_out()
    assert ("ended", {}) == (state(one), one.jobs)


def test_workers_that_end_at_once_are_started_with_pauses() -> None:
    one = ready(OneSession(created(workers=1)))
    one.happens(min(one.workers), "gone", exit_code=4)
    one.start_all()
    for pause in (1.0, 2.0, 4.0):
        one.happens(min(one.workers), "gone", exit_code=4, reason="its program has ended with code 4")
        assert ("degraded", True) == (state(one), "code 4" in one.session.reason)
        assert not one.workers
        assert one.now + pause == next_time(one.session)
        one.passes(pause)
        one.start_all()
        assert 1 == len(one.workers)
