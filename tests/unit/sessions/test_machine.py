"""
Whatever happens to a session, in whatever order: exactly the wanted number of workers is there, nothing was submitted twice, and
nothing is left when it is over.
"""

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kettle_services.sessions.domain.decisions import Heard
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveRestarted,
    InteractiveSchedulerSeen,
)
from kettle_wire.sessions import SessionAdapt, SessionTarget

from .one_session import OneSession, created

_PICK = strategies.integers(0, 1_000)


class SessionMachine(RuleBasedStateMachine):
    """One session of Dask, to which things happen."""

    def __init__(self) -> None:
        super().__init__()
        self.one = OneSession(created())

    @initialize(
        workers=strategies.integers(0, 6),
        worker_life=strategies.sampled_from([0.0, 4_000.0]),
        idle=strategies.sampled_from([0.0, 500.0]),
    )
    def begins(self, workers: int, worker_life: float, idle: float) -> None:
        """With some limits or none."""
        self.one = OneSession(created(workers=workers, worker_life=worker_life, idle=idle))

    def _pick(self, at: int, *statuses: str) -> int | None:
        found = [n for n, each in self.one.session.members.items() if each.status in statuses]
        return found[at % len(found)] if found else None

    @rule(twice=strategies.booleans())
    def carried_out(self, twice: bool) -> None:
        """What is to be done is done; answers may be lost."""
        self.one.carry_out(lose_answers=twice)

    @rule(at=_PICK)
    def starts(self, at: int) -> None:
        """A member gets a slot and runs."""
        if (number := self._pick(at, "idle")) is not None:
            self.one.starts(number, site="T2_X")

    @rule(at=_PICK)
    def is_lost(self, at: int) -> None:
        """A machine goes."""
        if (number := self._pick(at, "running", "matched")) is not None:
            self.one.happens(number, "idle")

    @rule(at=_PICK, code=strategies.sampled_from([0, 1, -9]))
    def ends(self, at: int, code: int) -> None:
        """A program ends."""
        if (number := self._pick(at, "running")) is not None:
            self.one.happens(number, "gone", exit_code=code)

    @rule(at=_PICK)
    def is_held(self, at: int) -> None:
        """A member is held."""
        if (number := self._pick(at, "idle", "running")) is not None:
            self.one.happens(number, "held", reason="no such image")

    @rule(at=_PICK)
    def is_removed_by_hand(self, at: int) -> None:
        """Somebody removes the job of a worker."""
        number = self._pick(at, "idle", "held", "running")
        if number is not None and self.one.session.members[number].role == "worker":
            self.one.happens(number, "gone", removed_by="ann", reason="via condor_rm")

    @rule(workers=strategies.integers(0, 6))
    def is_resized(self, workers: int) -> None:
        """Another number is wanted."""
        target = SessionTarget(workers=workers)
        self.one.settle([InteractiveChanged(target=target, by="ann", what="a size")])

    @rule(least=strategies.integers(0, 3), more=strategies.integers(0, 3))
    def is_adapted(self, least: int, more: int) -> None:
        """The scheduler chooses."""
        target = SessionTarget(adapt=SessionAdapt(minimum=least, maximum=least + more))
        self.one.settle([InteractiveChanged(target=target, by="ann", what="adapt")])

    @rule(
        wish=strategies.none() | strategies.integers(0, 9),
        retired=strategies.booleans(),
        idle=strategies.booleans(),
    )
    @precondition(
        lambda self: self.one.session.head is not None and self.one.session.head.status == "running"
    )
    def scheduler_reports(self, wish: int | None, retired: bool, idle: bool) -> None:
        """The program of the head says how things are."""
        if not self.one.session.contact:
            self.one.settle([InteractiveSchedulerSeen(contact="kettle://1.0/dask")])
        gone = [each.job for each in self.one.session.workers.values() if each.retiring] if retired else []
        self.one.heard = Heard(target=wish, retired=frozenset(gone), idle_since=self.one.now if idle else 0.0)
        self.one.settle()

    @rule(seconds=strategies.sampled_from([1.0, 30.0, 61.0, 700.0, 3_000.0]))
    def time_passes(self, seconds: float) -> None:
        """Nothing else."""
        self.one.passes(seconds)

    @rule()
    def service_is_restarted(self) -> None:
        """It knows what it has recorded."""
        self.one.restart_service()

    @rule(refuse=strategies.booleans())
    def queue_is_full(self, refuse: bool) -> None:
        """Or not any more."""
        self.one.refuse = "full" if refuse else ""

    @rule()
    def is_restarted(self) -> None:
        """All jobs again."""
        if not self.one.session.closing and not self.one.session.ended:
            self.one.settle([InteractiveRestarted(by="ann")])

    @rule()
    @precondition(lambda self: len(self.one.log) > 60)
    def is_stopped(self) -> None:
        """Somebody has had enough."""
        if not self.one.session.closing and not self.one.session.ended:
            self.one.settle([InteractiveClosing(outcome="stopped", reason="enough", by="ann")])

    @invariant()
    def nothing_is_decided_a_second_time(self) -> None:
        """Asking again brings nothing."""
        assert not self.one.settle()

    @invariant()
    def every_job_is_known(self) -> None:
        """No job is in the queue that no member is."""
        known = {each.job for each in self.one.session.members.values()}
        assert self.one.jobs.keys() <= known

    @invariant()
    def as_many_as_are_wanted_or_a_reason(self) -> None:
        """On their way or running; else the head does not run, or an order was refused just now."""
        session = self.one.session
        head = session.head
        if (
            session.closing
            or session.ended
            or head is None
            or head.status != "running"
            or session.refusals
            or session.failures > 1
        ):
            return
        assert session.target.workers == len(self.one.workers)

    def teardown(self) -> None:
        """In the end it is stopped, and nothing is left."""
        one = self.one
        one.refuse = ""
        if not one.session.closing and not one.session.ended:
            one.settle([InteractiveClosing(outcome="stopped", reason="the end", by="ann")])
        one.carry_out(lose_answers=True)
        assert one.session.ended
        assert not one.jobs
        assert not one.session.members
        batches = one.session.next_batch - 1
        assert len(one.clusters) <= batches, "a batch has one cluster"


SessionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSessionMachine = SessionMachine.TestCase
