"""Sessions whose scheduler is a program of their owner's, and no job."""

import msgspec
import pytest

from kettle_services.sessions.domain.creation import NotPossible, planned
from kettle_services.sessions.domain.decisions import SILENT_S, Heard, silent_at
from kettle_services.sessions.domain.profiles import Profile
from kettle_wire.commands.sessions import NewSession
from kettle_wire.events.interactive import InteractiveRestarted, InteractiveSchedulerSeen
from kettle_wire.sessions import SessionSize

from .one_session import OneSession, created


def local(workers: int) -> OneSession:
    """A session that has just begun."""
    first = created(workers=workers)
    return OneSession(msgspec.structs.replace(first, plan=msgspec.structs.replace(first.plan, local=True)))


def speaks(one: OneSession) -> None:
    """The program reports where it is."""
    one.heard = Heard(at=one.now)
    one.settle([InteractiveSchedulerSeen(contact="kettle://0.0/dask@127.0.0.1:4000,machine:1")])


def test_workers_come_when_the_scheduler_has_said_where_it_is() -> None:
    """There is no head, so nothing of one is ordered, and none is waited for."""
    one = local(2)
    assert ("starting", {}) == (one.session.state, one.session.members)
    assert "has not said yet where it is reached" in one.session.reason
    speaks(one)
    assert {"worker"} == {each.role for each in one.session.members.values()}
    one.start_all()
    assert ("ready", 2) == (one.session.state, len(one.workers))


def state(one: OneSession) -> str:
    return one.session.state


def test_a_lost_worker_is_replaced_as_with_any_scheduler() -> None:
    one = local(2)
    speaks(one)
    one.start_all()
    one.happens(1, "idle")
    assert "degraded" == state(one)
    one.start_all()
    assert "ready" == state(one)


def test_a_scheduler_that_says_nothing_is_given_up_and_its_workers_end() -> None:
    """However long it has spoken before: its program is gone, and nobody else can have its results."""
    one = local(2)
    speaks(one)
    one.start_all()
    one.passes(SILENT_S / 2)
    speaks(one)
    assert one.now + SILENT_S == silent_at(one.session, one.heard)
    one.passes(SILENT_S - 1)
    assert "ready" == state(one)
    one.passes(1)
    one.carry_out()
    assert ("ended", "failed", {}) == (one.session.state, one.session.outcome, one.jobs)
    assert "a program of ann's, has said nothing for 1 minute" in one.session.reason


def test_one_that_never_spoke_is_given_up_too() -> None:
    one = local(0)
    one.passes(SILENT_S)
    assert "ended" == state(one)


def test_workers_begin_again_when_it_is_started_again() -> None:
    """The scheduler is not ours to start: it says again where it is, and gets others."""
    one = local(1)
    speaks(one)
    one.start_all()
    one.settle([InteractiveRestarted(by="ann", reason="")])
    one.carry_out()
    assert {} == one.session.members
    speaks(one)
    one.start_all()
    assert ("ready", 1) == (one.session.state, len(one.workers))


def test_only_schedulers_of_dask_are_local() -> None:
    new = NewSession(kind="process", command=["/bin/true"], local=True, size=SessionSize())
    with pytest.raises(NotPossible, match="only schedulers of Dask"):
        planned(new, "process", Profile(kind="process"), "0123456789ab")
