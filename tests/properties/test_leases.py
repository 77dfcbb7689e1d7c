"""
Leases and machines against a provider that loses answers, lies late, and forgets, with a scaler that dies at any moment.
"""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kettle_services.scaler.domain.leases.answers import answered
from kettle_services.scaler.domain.leases.book import Act, Create, Decision, Dismiss, Drain, Look, Remove
from kettle_services.scaler.domain.leases.lease import SERVING, Lease
from kettle_services.scaler.domain.leases.machines import heard
from kettle_services.scaler.domain.leases.passing import due, restarted
from kettle_services.scaler.domain.leases.reconciling import listed, looked
from kettle_services.scaler.domain.leases.seen import Seen
from kettle_services.scaler.domain.leases.timers import Timers
from kettle_services.scaler.domain.leases.wishes import release, withdraw
from kettle_services.scaler.domain.state import ScalerState
from kettle_wire.commands.provisioner import Created, MachineLooked, MachinesFound, Trouble
from kettle_wire.commands.scaler import Phase, Renew
from kettle_wire.events.lease import LeaseGone, LeaseRequested
from kettle_wire.leases import ErrorClass, LeaseState, MachineFound, MachineState
from kettle_wire.worker_pools import Offer

TIMERS = Timers()
VISIBILITY = 30.0
"""Longer than the first pauses between removals: a machine that is removed at once is asked for more than once before it is shown."""
PROVIDER = "cloud"
OFFER = Offer(name="small", provider=PROVIDER, cpus=2, memory=1000, boot=60.0)
LIFE = 7200.0
QUIET_ROUNDS = 400
_FATES: dict[type[Act], list[str]] = {
    Create: ["done", "lost", "late", "nobody", *ErrorClass],
    Remove: ["done", "lost", "ignored", "away"],
    Look: ["done", "away"],
    Drain: ["done"],
    Dismiss: ["done"],
}
"""What may become of an act; the first is what ought to."""


class Machine(msgspec.Struct):
    """What is really there."""

    handle: str
    lease: str
    created: float
    speaks: bool = True


class Leases(RuleBasedStateMachine):
    """A scaler's decisions, the acts that they lead to, and a world in which anything may happen to them."""

    @initialize()
    def begin(self) -> None:
        self.now = 1_000_000.0
        self.state = ScalerState()
        self.book = self.state.book(TIMERS)
        self.seen = Seen(self.now)
        self.seen.sound = self.now
        self.pending: list[Act] = []
        self.late: list[Create] = []
        self.machines: dict[str, Machine] = {}
        self.sent: set[tuple[str, int]] = set()
        self.made = 0
        self.count = 0

    # -- the scaler ---------------------------------------------------------------------------------------------------

    def decision(self) -> Decision:
        return Decision(self.book, self.seen, self.now)

    def commit(self, decision: Decision) -> None:
        """Fold what was decided, and leave what is to be done for later."""
        for stream, event in decision.changes:
            if isinstance(event, LeaseGone):
                handle = self.book.leases[stream.partition("/")[2]].handle
                assert handle not in self.machines, f"{handle} is there, and its lease is over"
            self.state.apply(stream, event, self.now)
        for act in decision.acts:
            if isinstance(act, Create):
                key = (act.order.lease, act.order.attempt)
                assert key not in self.sent, f"{key} is asked for twice"
                self.sent.add(key)
            self.pending.append(act)

    @rule(number=st.integers(1, 3))
    def request(self, number: int) -> None:
        for _ in range(number):
            self.count += 1
            lease = f"crowd-{self.count}"
            event = LeaseRequested(
                lease=lease, pool="crowd", offer=OFFER, life=LIFE, until=self.now + 600, ordinal=self.count
            )
            self.state.apply(f"lease/{lease}", event, self.now)

    @rule(seconds=st.sampled_from([0.5, 3.0, 20.0, 90.0, 400.0, 1300.0]))
    def pass_time(self, seconds: float) -> None:
        for create in self.late:  # a provisioner takes less time than `answer`
            self.make(create)
        self.late.clear()
        self.now += seconds
        decision = self.decision()
        due(decision)
        self.commit(decision)

    @rule(data=st.data())
    def kill_scaler(self, data: st.DataObject) -> None:
        """What was sent may or may not have arrived; no answer is heard."""
        for act in self.pending:
            fate = data.draw(st.sampled_from(["never", "now", "late"]))
            if isinstance(act, Create) and fate == "now":
                self.make(act)
            elif isinstance(act, Create) and fate == "late":
                self.late.append(act)
            elif isinstance(act, Remove) and fate == "now":
                self.machines.pop(act.handle, None)
        self.pending.clear()
        restored = ScalerState()
        for stream, row in self.state.rows():
            restored.restore(stream, row)
        assert dict(restored.rows()) == dict(self.state.rows())
        self.state, self.book, self.seen = restored, restored.book(TIMERS), Seen(self.now)
        self.seen.sound = self.now
        decision = self.decision()
        restarted(decision)
        assert not decision.acts
        self.commit(decision)

    @precondition(lambda self: self.book.leases)
    @rule(data=st.data(), force=st.booleans())
    def give_up(self, data: st.DataObject, force: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.book.leases)))
        decision = self.decision()
        release(decision, self.book.leases[name], "it is not needed", force=force)
        self.commit(decision)

    @rule(pauses=st.lists(st.sampled_from([0.5, 3.0, 20.0]), max_size=4))
    def change_minds(self, pauses: list[float]) -> None:
        """
        A machine is not wanted any more as soon as it is made, and its provider is asked how it is while it gets older.
        """
        self.request(1)
        lease = f"crowd-{self.count}"
        self.pass_time(0.5)
        for act in [each for each in self.pending if isinstance(each, Create) and each.order.lease == lease]:
            self.pending.remove(act)
            self.carry_out(act, "done")
            self.withdraw(lease)
            for pause in pauses:
                self.pass_time(pause)
                self.look(PROVIDER, f"i-{self.made}")

    def withdraw(self, lease: str) -> None:
        decision = self.decision()
        withdraw(decision, self.book.leases[lease], "it is not needed")
        self.commit(decision)

    # -- the world ----------------------------------------------------------------------------------------------------

    def make(self, create: Create) -> str:
        self.made += 1
        handle = f"i-{self.made}"
        self.machines[handle] = Machine(handle, create.order.lease, self.now)
        return handle

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.pending) - 1))
        act = self.pending.pop(index)
        self.carry_out(act, data.draw(st.sampled_from(_FATES[type(act)])))

    def carry_out(self, act: Act, fate: str) -> None:
        match act:
            case Create():
                self.create(act, fate)
            case Remove(provider=provider, handle=handle):
                if fate in {"done", "lost"}:
                    self.machines.pop(handle, None)
                if fate in {"done", "ignored"}:
                    self.look(provider, handle)
            case Look(provider=provider, handle=handle) if fate == "done":
                self.look(provider, handle)
            case _:
                pass

    def create(self, act: Create, fate: str) -> None:
        lease, attempt = act.order.lease, act.order.attempt
        if fate == "late":
            self.late.append(act)
            return
        if fate == "done":
            created = Created(lease=lease, attempt=attempt, handle=self.make(act))
        elif fate == "lost":
            self.make(act)
            created = Created(lease=lease, attempt=attempt, words="no answer")
        else:
            error = None if fate == "nobody" else ErrorClass(fate)
            created = Created(lease=lease, attempt=attempt, trouble=Trouble(error=error, words="no"))
        decision = self.decision()
        answered(decision, created)
        self.commit(decision)

    def found(self, machine: Machine) -> MachineFound:
        return MachineFound(
            handle=machine.handle,
            state=MachineState.RUNNING,
            lease=machine.lease,
            deployment="here",
            created=machine.created,
        )

    def shown(self, machine: Machine) -> bool:
        return self.now - machine.created >= VISIBILITY

    def look(self, provider: str, handle: str) -> None:
        machine = self.machines.get(handle)
        there = machine is not None and self.shown(machine)
        said = (
            self.found(machine) if machine and there else MachineFound(handle=handle, state=MachineState.GONE)
        )
        decision = self.decision()
        looked(decision, provider, MachineLooked(handle=handle, machine=said))
        self.commit(decision)

    @rule(complete=st.booleans(), data=st.data())
    def list_all(self, complete: bool, data: st.DataObject) -> None:
        """A list is incomplete if it says so, and shows new machines late in any case."""
        machines = [each for each in self.machines.values() if self.shown(each)]
        if not complete:
            machines = [each for each in machines if data.draw(st.booleans())]
        self.tell_list(machines, complete=complete)

    def tell_list(self, machines: list[Machine], *, complete: bool) -> None:
        decision = self.decision()
        told = MachinesFound(
            machines=[self.found(each) for each in machines], complete=complete, visibility=VISIBILITY
        )
        listed(decision, PROVIDER, told)
        self.commit(decision)

    @rule(error=st.sampled_from([None, ErrorClass.AUTH, ErrorClass.RATE]))
    def list_fails(self, error: ErrorClass | None) -> None:
        before = set(self.book.leases)
        decision = self.decision()
        listed(decision, PROVIDER, MachinesFound(trouble=Trouble(error=error, words="no")))
        assert not decision.acts
        self.commit(decision)
        assert before == set(self.book.leases), "a provider that does not answer changes no lease"

    @precondition(lambda self: self.machines)
    @rule(data=st.data())
    def vanish(self, data: st.DataObject) -> None:
        self.machines.pop(data.draw(st.sampled_from(sorted(self.machines))))

    @rule(data=st.data())
    def made_by_hand(self, data: st.DataObject) -> None:
        """A machine with our mark, for a lease that there is, or for one that there is not."""
        name = data.draw(st.sampled_from([*sorted(self.book.leases), "nobody-1"]))
        self.made += 1
        self.machines[f"h-{self.made}"] = Machine(f"h-{self.made}", name, self.now, speaks=False)

    @precondition(lambda self: self.machines)
    @rule(data=st.data(), phase=st.sampled_from(list(Phase)), claims=st.integers(0, 1))
    def speak(self, data: st.DataObject, phase: Phase, claims: int) -> None:
        machine = self.machines[data.draw(st.sampled_from(sorted(self.machines)))]
        if machine.speaks:
            self.say(machine, phase, claims)

    def say(self, machine: Machine, phase: Phase, claims: int = 0) -> None:
        decision = self.decision()
        heard(decision, machine.lease, Renew(phase=phase, age=1.0, claims=claims))
        self.commit(decision)

    # -- the claims ---------------------------------------------------------------------------------------------------

    @invariant()
    def every_state_has_a_deadline(self) -> None:
        for lease in self.book.leases.values():
            assert lease.until > 0, lease

    def teardown(self) -> None:
        """
        When nothing goes wrong any more, each lease has its machine and each machine its lease; and nothing is left when nothing is
        wanted.
        """
        if not hasattr(self, "book"):
            return
        self.be_quiet(wanted=True)
        for lease in self.book.leases.values():
            if lease.handle:
                assert lease.handle in self.machines, f"{lease.id} has no machine"
        handles = [lease.handle for lease in self.book.leases.values()]
        assert sorted(self.machines) == sorted(filter(None, handles)), "a machine has no lease"
        self.be_quiet(wanted=False)
        assert {} == dict(self.book.leases), "leases are left"
        assert {} == self.machines, "machines are left"
        assert {} == dict(self.book.orphans), "orphans are left"

    def be_quiet(self, *, wanted: bool) -> None:
        for _ in range(QUIET_ROUNDS):
            self.honest_round(wanted=wanted)
            if self.settled(wanted=wanted):
                return

    def settled(self, *, wanted: bool) -> bool:
        states = {lease.state for lease in self.book.leases.values()}
        if not wanted:
            return not (states or self.machines or self.book.orphans)
        doubtful = any(each.duplicates for each in self.book.leases.values()) or self.seen.absent
        hidden = not all(map(self.shown, self.machines.values()))
        return not (self.pending or self.book.orphans or doubtful or hidden) and states <= SERVING

    def honest_round(self, *, wanted: bool) -> None:
        for create in self.late:
            self.make(create)
        self.late.clear()
        while self.pending:
            act = self.pending.pop(0)
            self.carry_out(act, _FATES[type(act)][0])
        self.now += 7.0
        for machine in list(self.machines.values()):
            lease = self.book.leases.get(machine.lease)
            if machine.speaks and lease is not None and lease.handle in {"", machine.handle}:
                self.say(machine, Phase.READY)
        self.tell_list([each for each in self.machines.values() if self.shown(each)], complete=True)
        decision = self.decision()
        due(decision)
        if not wanted:
            self.want_none(decision)
        self.commit(decision)

    def want_none(self, decision: Decision) -> None:
        streams = {stream for stream, _ in decision.changes}
        for lease in self.book.leases.values():
            if f"lease/{lease.id}" not in streams:
                self.end(decision, lease)

    def end(self, decision: Decision, lease: Lease) -> None:
        if lease.state in SERVING:
            release(decision, lease, "nothing is wanted", force=True)
        elif lease.state is not LeaseState.TERMINATING:
            withdraw(decision, lease, "nothing is wanted")


Leases.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestLeases = Leases.TestCase
