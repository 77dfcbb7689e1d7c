"""
Whatever schedds ask of a machine, in whatever order and layout: nothing is given twice, and nothing is lost.
"""

from collections import Counter
from contextlib import suppress

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kettle_services.startd.domain.ads import slot_ads
from kettle_services.startd.domain.claims import activation, preemption, requests
from kettle_services.startd.domain.policy import draining, evaluation
from kettle_services.startd.domain.slots.layout import SlotType
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.changes import Change, ClaimRemoved, StarterConnected
from kettle_services.startd.domain.state.claim import DrainInForce, Now, Speed
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import state_of
from kettle_wire.ads import Expr
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.commands.startd import Activation, Alive, ClaimKey, Deactivation, RequestClaims
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report

from .slot_machines import IDS, TOTALS, TYPES, WISHES, facts, left_of, overdrawn, sums


@given(TYPES, TOTALS)
def test_a_layout_gives_away_what_there_is_and_each_device_once(
    types: list[SlotType], total: Resources
) -> None:
    """The slots together never have more than the machine, and every slot has a core."""
    slots = facts(types, total).slots

    have = sums([slot.total for slot in slots])
    assert all(have[name] <= amount for name, amount in total.named().items())
    assert all(slot.total.cpus >= 1 for slot in slots)
    ids = [each for slot in slots for each in slot.devices["GPUs"]]
    assert len(set(ids)) == len(ids)
    assert all(len(slot.devices["GPUs"]) == slot.total.custom["GPUs"] for slot in slots)


LEADS = {
    (("Claimed", "Busy"), ("Claimed", "Suspended")),
    (("Claimed", "Busy"), ("Claimed", "Retiring")),
    (("Claimed", "Busy"), ("Preempting", "Vacating")),
    (("Claimed", "Busy"), ("Preempting", "Killing")),
    (("Claimed", "Suspended"), ("Claimed", "Busy")),
    (("Claimed", "Suspended"), ("Claimed", "Retiring")),
    (("Claimed", "Suspended"), ("Preempting", "Vacating")),
    (("Claimed", "Suspended"), ("Preempting", "Killing")),
    (("Claimed", "Retiring"), ("Claimed", "Suspended")),
    (("Claimed", "Retiring"), ("Preempting", "Vacating")),
    (("Claimed", "Retiring"), ("Preempting", "Killing")),
    (("Preempting", "Vacating"), ("Preempting", "Killing")),
}
"""Where one look of the policy may lead a slot that stays claimed."""


class Requests(RuleBasedStateMachine):
    """
    Claims, activations, reports, releases, lapsed leases, looks of any policy, draining and restarts with another layout,
    in any order.
    """

    @initialize(types=TYPES, total=TOTALS, must=st.booleans(), jobs=st.integers(0, 3))
    def begin(self, types: list[SlotType], total: Resources, *, must: bool, jobs: int) -> None:
        self.must = must
        self.machine = Machine(facts(types, total, must=must), capability="right")
        self.clock = 0.0
        self.minted = 0
        self.attempts = 0
        self.known: set[str] = set()
        self.ended: Counter[str] = Counter()
        for _ in range(jobs):
            self.run_small()

    def run_small(self) -> None:
        """
        A job that asks for little begins, if there is room: most of what asks for something at random finds none.
        """
        name = f"c{self.minted}"
        self.minted += 1
        slot = self.machine.facts.slots[0]
        command = RequestClaims(
            schedd="schedd",
            slot=self.machine.facts.slot_name(slot.number),
            capability="right",
            submitter="alice",
            job={"Requirements": True, "RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1},
            claims=[ClaimKey(name, "s")],
            lease=60.0,
        )
        reply, changes = requests.request_claims(self.machine, command, self.now)
        self.apply(changes)
        if reply.granted:
            self.known.add(name)
            self.run_on(name, liking=0)

    @property
    def now(self) -> Now:
        return Now(clock=self.clock, time=self.clock)

    def apply(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, ClaimRemoved):
                waiting = {claim.key.claim for claim in self.machine.waiting.values()}
                assert change.claim in {*self.machine.claims, *waiting}, "a claim ends that is not there"
                self.ended[change.claim] += 1
            had = self.given()
            self.machine.apply(change)
            if isinstance(change, ClaimRemoved):
                assert all(amount <= had[name] for name, amount in self.given().items()), "two heirs"

    def given(self) -> Counter[str]:
        """What all claims have together."""
        everybody = (*self.machine.claims.values(), *self.machine.waiting.values())
        return sums([claim.resources for claim in everybody])

    @rule(
        data=st.data(),
        count=st.integers(1, 3),
        cpus=st.integers(0, 4),
        memory=st.integers(0, 4000),
        gpus=st.integers(0, 3),
        licences=st.integers(0, 2),
        least=st.one_of(st.none(), st.integers(0, 3)),
    )
    def ask(
        self,
        data: st.DataObject,
        count: int,
        cpus: int,
        memory: int,
        gpus: int,
        licences: int,
        least: int | None,
    ) -> None:
        slot: Slot = data.draw(st.sampled_from(self.machine.facts.slots))
        had = set(self.machine.claims)
        keys = [ClaimKey(f"c{self.minted + n}", "s") for n in range(count)]
        self.minted += count
        command = RequestClaims(
            schedd="schedd",
            slot=self.machine.facts.slot_name(slot.number),
            capability="right",
            submitter="alice",
            job={
                "Requirements": True,
                "RequestCpus": cpus,
                "RequestMemory": memory,
                "RequestGPUs": gpus,
                "RequestLicences": licences,
                **({} if least is None else {"RequireGPUs": Expr(f"Capability >= {least}")}),
            },
            claims=keys,
            lease=60.0,
        )
        shut = self.machine.shut or slot.number in self.machine.owned
        reply, changes = requests.request_claims(self.machine, command, self.now)
        assert not (shut and reply.granted), "a slot that takes nothing was given"
        self.apply(changes)
        self.known |= {grant.claim for grant in reply.granted}
        fresh = [claim.resources for name, claim in self.machine.claims.items() if name not in had]
        given = sums([claim.resources for claim in self.machine.claims.values()])
        total = self.machine.facts.total.named()
        assert all(given[name] <= total[name] for name, amount in sums(fresh).items() if amount)
        for grant in reply.granted:
            claim = self.machine.claims[grant.claim]
            assert claim.resources.cpus >= cpus
            assert claim.resources.memory >= memory
            assert claim.resources.custom["Licences"] >= licences
            suitable = [each for each in claim.devices.get("GPUs", []) if IDS.index(each) >= (least or 0)]
            assert len(suitable) >= gpus
            assert claim.whole or len(suitable) == len(claim.devices.get("GPUs", []))
        again, nothing = requests.request_claims(self.machine, command, self.now)
        assert {grant.claim for grant in reply.granted} <= {grant.claim for grant in again.granted}
        self.apply(nothing)
        self.known |= {grant.claim for grant in again.granted}

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data(), liking=st.integers(0, 3))
    def activate(self, data: st.DataObject, liking: int) -> None:
        self.run_on(data.draw(st.sampled_from(sorted(self.machine.claims))), liking)

    def run_on(self, claim: str, liking: int) -> None:
        """A job that fits begins on a claim, if it may."""
        self.attempts += 1
        busy = self.machine.claims[claim].attempt
        amounts = self.machine.claims[claim].resources.named()
        what = Activation(
            key=ClaimKey(claim, "s"),
            job=JobId(1, self.attempts),
            attempt=1,
            ad={"Liking": liking, **{f"Request{name}": amount for name, amount in amounts.items()}},
            inputs=[],
            shadow="shadow",
        )
        result, changes = activation.activate(self.machine, what, self.now)
        self.apply([*changes, StarterConnected(claim, 1, 1)])
        assert not (busy is not None and result.code == 0), "two jobs in one slot"
        if result.code == 0:
            assert float(liking) == self.machine.claims[claim].rank, "the rank is that of another job"

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data(), liking=st.integers(0, 3), stale=st.booleans())
    def outrank(self, data: st.DataObject, liking: int, *, stale: bool) -> None:
        self.prefer(data.draw(st.sampled_from(sorted(self.machine.claims))), liking, stale=stale)

    def prefer(self, name: str, liking: int, *, stale: bool = False) -> None:
        """Somebody asks for the slot that a claim has, by the match that it has now or by one before."""
        current = self.machine.claims[name]
        key = ClaimKey(f"c{self.minted}", "s")
        self.minted += 1
        command = RequestClaims(
            schedd="schedd",
            slot=self.machine.facts.name_of(current),
            capability="old" if stale else preemption.capability(self.machine, current),
            submitter="bob",
            job={
                "Requirements": True,
                "Liking": liking,
                **{f"Request{name}": amount for name, amount in current.resources.named().items()},
            },
            claims=[key],
            lease=60.0,
        )
        may = current in preemption.preemptible(self.machine) and liking > current.rank and not stale
        was = state_of(current)
        reply, changes = requests.request_claims(self.machine, command, self.now)
        self.apply(changes)
        answered = [*reply.waiting, *(grant.claim for grant in reply.granted)]
        self.known |= set(answered)
        assert may or not answered, "somebody preempts who may not"
        if answered:
            was_idle = was == ("Claimed", "Idle")
            assert was_idle == bool(reply.granted), "a slot is given before it is free, or not when it is"
            heir = self.machine.claims[key.claim] if was_idle else self.machine.waiting[key.claim]
            assert current.slot == heir.slot
            if was_idle:
                assert (current.resources, current.devices) == (heir.resources, heir.devices)

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data(), hard=st.booleans(), rivals=st.integers(0, 2))
    def deactivate(self, data: st.DataObject, *, hard: bool, rivals: int) -> None:
        """
        The submit side has the attempt ended: its claim goes on, unless it ends already, or somebody wants its slot.
        """
        claim = self.machine.claims[data.draw(st.sampled_from(sorted(self.machine.claims)))]
        if claim.attempt is not None:
            order = Deactivation(
                key=claim.key,
                job=claim.attempt.job,
                attempt=claim.attempt.attempt,
                ending=Ending(code=1023, reason="removed"),
                hard=hard,
            )
            self.apply(activation.deactivate(self.machine, order, self.now))
            assert state_of(self.machine.claims[claim.key.claim])[1] in {"Cleaning", "Vacating", "Killing"}
            for better in range(rivals):
                self.prefer(claim.key.claim, 4 + better)

    @precondition(lambda self: self.machine.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.machine.waiting)))
        heir = self.machine.waiting[name]
        told = {each for each in heir.after if self.machine.claims[each].preempting}
        self.apply(requests.release(self.machine, [heir.key], "no job is left", self.now))
        assert name not in self.machine.waiting
        for each in set(heir.after) - told:
            assert state_of(self.machine.claims[each])[1] in {"Busy", "Suspended"}

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data(), cpus=st.integers(0, 4))
    def swap(self, data: st.DataObject, cpus: int) -> None:
        names = data.draw(
            st.lists(st.sampled_from(sorted(self.machine.claims)), min_size=1, max_size=3, unique=True)
        )
        currents = [self.machine.claims[name] for name in names]
        key = ClaimKey(f"c{self.minted}", "s")
        self.minted += 1
        command = RequestClaims(
            schedd="schedd",
            slot=self.machine.facts.name_of(currents[0]),
            capability="",
            submitter="alice",
            job={"Requirements": True, "RequestCpus": cpus, "RequestMemory": 0, "RequestDisk": 0},
            claims=[key],
            lease=60.0,
            instead_of=[claim.key for claim in currents],
        )
        reply, changes = requests.request_claims(self.machine, command, self.now)
        self.apply(changes)
        self.known |= {*reply.waiting, *(grant.claim for grant in reply.granted)}
        if reply.granted or reply.waiting:
            assert cpus <= sum(claim.resources.cpus for claim in currents)
            idle = {claim.key.claim for claim in currents if claim.attempt is None}
            assert bool(reply.granted) == (idle == set(names))
            assert idle == set(names) - set(self.machine.claims)
            for claim in currents:
                after = self.machine.claims.get(claim.key.claim)
                assert after is None or state_of(after)[0] == "Preempting" or after.attempt is not None

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        claim = self.machine.claims[data.draw(st.sampled_from(sorted(self.machine.claims)))]
        if claim.attempt is not None:
            report = Report(
                claim=claim.key.claim,
                attempt=1,
                sequence=claim.sequence + 1,
                job=claim.attempt.job,
                body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0))),
            )
            self.apply(activation.over(self.machine, report, self.now))

    @precondition(lambda self: self.machine.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(sorted(self.machine.claims)))
        self.apply(requests.release(self.machine, [ClaimKey(claim, "s")], "enough", self.now))

    @rule(seconds=st.sampled_from([1.0, 20.0, 61.0]), renew=st.booleans())
    def wait(self, seconds: float, *, renew: bool) -> None:
        self.clock += seconds
        if renew:
            keys = [ClaimKey(claim, "s") for claim in self.machine.claims]
            alive = Alive(schedd="schedd", claims=keys, deadline=self.clock + 60.0)
            self.apply(requests.alive(self.machine, alive, self.now)[1])
        self.apply(requests.expire(self.machine, self.now))

    @rule(wishes=st.dictionaries(st.sampled_from([*WISHES, "START_NOW"]), st.booleans()))
    def look(self, wishes: dict[str, bool]) -> None:
        self.machine.conditions = dict(wishes)
        self.machine.owned = evaluation.owned(self.machine, self.now)
        before = {name: state_of(claim) for name, claim in self.machine.claims.items()}
        self.apply(evaluation.evaluate(self.machine, self.now))
        for name, claim in self.machine.claims.items():
            assert (before[name], state_of(claim)) in LEADS or before[name] == state_of(claim)
        self.apply(draining.proceed(self.machine, self.now))

    @rule(
        speed=st.sampled_from(["graceful", "quick", "fast"]),
        resume=st.booleans(),
        start=st.sampled_from(["false", "true"]),
    )
    def drain(self, speed: Speed, *, resume: bool, start: str) -> None:
        self.minted += 1
        wish = DrainInForce(id=f"d{self.minted}", speed=speed, at=0.0, start=start, resume=resume)
        with suppress(draining.DrainRefused):
            self.apply(draining.begin(self.machine, wish, "", self.now))
            assert [] == draining.begin(self.machine, wish, "", self.now), "said twice is not said once"
        self.apply(draining.proceed(self.machine, self.now))

    @precondition(lambda self: self.machine.drain)
    @rule()
    def cancel(self) -> None:
        self.apply(draining.cancel(self.machine, "", self.now))
        assert not any(
            state_of(claim)[1] == "Retiring" and claim.then is not None and claim.then.ending.code == 1014
            for claim in self.machine.claims.values()
        )

    @rule(types=TYPES, total=TOTALS)
    def restart(self, types: list[SlotType], total: Resources) -> None:
        after = Machine(facts(types, total, must=self.must), capability="right")
        for change in self.machine.snapshot():
            after.apply(change)
        assert (self.machine.claims, self.machine.drain) == (after.claims, after.drain)
        assert self.machine.waiting == after.waiting
        self.machine = after

    @rule(drift=st.integers(-3000, 3000))
    def restart_with_a_little_more_or_less_disk(self, drift: int) -> None:
        was = self.machine.facts
        total = msgspec.structs.replace(was.total, disk=max(1, was.total.disk + drift))
        types = [
            SlotType(
                partitionable=slot.partitionable,
                cpus=slot.total.cpus,
                memory=slot.total.memory,
                resources=dict(slot.total.custom),
            )
            for slot in was.slots
        ]
        closed = [slot.number for slot in was.slots if not self.machine.open_to_claims(slot)]
        self.restart(types, total)
        after = self.machine
        assert closed == [slot.number for slot in after.facts.slots if not after.open_to_claims(slot)]

    @rule()
    def ask_for_all_that_is_left(self) -> None:
        if self.machine.conditions.get("START_NOW") is False:
            return
        for slot in self.machine.facts.slots:
            if self.machine.shut or slot.number in self.machine.owned:
                continue
            left = left_of(self.machine, slot)
            whole = all(left[name] == amount for name, amount in slot.total.named().items() if name != "Disk")
            if slot.partitionable:
                if any(claim.whole for claim in self.machine.claims_on(slot)):
                    continue
            elif self.machine.claims_on(slot) or not whole or overdrawn(self.machine) - {"Disk"}:
                continue  # a slot that has none of what is overdrawn is closed as well
            if self.must:
                left["Memory"] -= left["Memory"] % 700
                left["Disk"] -= left["Disk"] % 1024
                if not left["Memory"]:  # to quantize it makes something of nothing
                    continue
            name = f"all{self.minted}"
            self.minted += 1
            command = RequestClaims(
                schedd="schedd",
                slot=self.machine.facts.slot_name(slot.number),
                capability="right",
                submitter="alice",
                job={"Requirements": True, **{f"Request{name}": amount for name, amount in left.items()}},
                claims=[ClaimKey(name, "s")],
                lease=60.0,
            )
            reply, _ = requests.request_claims(self.machine, command, self.now)
            assert [name] == [grant.claim for grant in reply.granted], reply.reason

    @precondition(lambda self: self.machine.claims)
    @rule()
    def everything_ends(self) -> None:
        keys = [ClaimKey(claim, "s") for claim in self.machine.claims]
        keys += [claim.key for claim in self.machine.waiting.values()]
        self.apply(requests.release(self.machine, keys, "enough", self.now))
        for claim in list(self.machine.claims.values()):
            assert claim.attempt is not None
            report = Report(
                claim=claim.key.claim,
                attempt=1,
                sequence=claim.sequence + 1,
                job=claim.attempt.job,
                body=FinalReport(result=AttemptResult(exit=ExitRecord(code=0))),
            )
            self.apply(activation.over(self.machine, report, self.now))
        assert not self.machine.claims
        for slot in self.machine.facts.slots:
            assert slot.total == self.machine.free(slot)
            assert {tag: list(ids) for tag, ids in slot.devices.items()} == self.machine.free_devices(slot)
        self.ask_for_all_that_is_left()

    @invariant()
    def nothing_is_given_twice(self) -> None:
        if not hasattr(self, "machine"):
            return
        everybody = [*self.machine.claims.values(), *self.machine.waiting.values()]
        ids = [each for claim in everybody for each in claim.devices.get("GPUs", [])]
        assert len(set(ids)) == len(ids)
        numbers = [claim.slot for claim in self.machine.claims.values()]
        assert len(set(numbers)) == len(numbers)

    @invariant()
    def a_claim_ends_once(self) -> None:
        if hasattr(self, "machine"):
            waiting = {claim.key.claim for claim in self.machine.waiting.values()}
            assert self.known == set(self.machine.claims) | waiting | set(self.ended)
            assert not (set(self.machine.claims) | waiting) & set(self.ended)
            assert not set(self.machine.claims) & waiting
            assert all(
                set(claim.after) <= set(self.machine.claims) for claim in self.machine.waiting.values()
            )
            assert all(times == 1 for times in self.ended.values())

    @invariant()
    def who_waits_waits_alone_and_for_what_ends(self) -> None:
        if hasattr(self, "machine"):
            awaited = [name for claim in self.machine.waiting.values() for name in claim.after]
            assert len(set(awaited)) == len(awaited), "two wait for one claim"
            assert all(self.machine.claims[name].ending for name in awaited), "nobody comes to an end"

    @invariant()
    def every_slot_has_one_ad(self) -> None:
        if hasattr(self, "machine"):
            names = [ad["Name"] for ad in slot_ads(self.machine, now=0.0)]
            assert len(set(names)) == len(names)


TestRequests = Requests.TestCase
