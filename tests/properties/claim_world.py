"""
A schedd and a machine that speak about claims over a network that loses, delays and repeats what it is given.

Both sides are the real rules: the table of claims, the queue and the decisions about jobs here, the startd's answers there.  What is
between them, and what time does, is chance.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from kettle_services.schedd.domain.claims.claim_states import ClaimStates
from kettle_services.schedd.domain.claims.states import (
    ASKING,
    ON_RECORD,
    ClaimInstruction,
    ClaimPhase,
    ClaimState,
    ClaimStimulus,
)
from kettle_services.schedd.domain.jobs.commands import Assign, Begin, Command, Disconnect, End, Reconnect
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.startd.domain.claims import activation, preemption, requests
from kettle_services.startd.domain.slots.resources import Resources
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.changes import Change, ClaimRemoved
from kettle_services.startd.domain.state.claim import Now, StopOrder
from kettle_services.startd.domain.state.machine import Facts, Machine
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import VacateCode
from kettle_wire.commands.startd import Activation, Alive, ClaimKey, ClaimsDecided, RequestClaims
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, Event, JobCompleted
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport, Report

S: Final = ClaimStimulus
LEASE: Final = 60.0
AD: Final[Ad] = {"Requirements": True, "RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 100}
LOST: Final = Ending(code=VacateCode.ReconnectFailed, reason="lost")
TOTAL: Final = Resources(cpus=6, memory=600, disk=60_000)
PART: Final = Resources(cpus=2, memory=200, disk=20_000)
SLOTS: Final = tuple(Slot(number=n, type=1, partitionable=n == 1, total=PART) for n in (1, 2, 3))
"""One that is divided, and two that are not."""
POLICY: Final = PolicyExpressions({"RANK": "TARGET.Liking ?: 0"})
JOBS: Final = 40


class ClaimWorld:
    """Chance decides what happens next; `step` has it happen, and looks whether all is as it must be."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.queue = Queue("ap")
        self.states = ClaimStates(self.queue, self._witness)
        self.machine = Machine(
            Facts(name="m", total=TOTAL, detected=TOTAL, slots=SLOTS, policy=POLICY), capability="right"
        )
        self.clock = 0.0
        self.minted = 0
        self.submitted = 0
        self.network: list[Callable[[], None]] = []
        """What is on its way, either way."""
        self.asked: dict[str, RequestClaims] = {}
        """Claims that are asked for, and how."""
        self.reports: dict[tuple[str, JobId, int], bool] = {}
        """Final reports that nobody has confirmed yet: whether the claim has ended with the attempt."""
        self.ended: Counter[str] = Counter()
        self.completed: Counter[JobId] = Counter()
        self._expected: tuple[str, ClaimState] | None = None

    # -- both sides ----------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        return Now(clock=self.clock, time=self.clock)

    def send(self, message: Callable[[], None]) -> None:
        """It may be lost, or come twice."""
        for _ in range(self.chance.choice((0, 1, 1, 1, 1, 2))):
            self.network.append(message)

    def step(self) -> None:
        """Something happens."""
        self.clock += self.chance.random()
        if self.network and self.chance.random() < 0.5:
            self.network.pop(self.chance.randrange(len(self.network)))()
        else:
            self.chance.choice(self.happenings)()
        self.check()

    @property
    def happenings(self) -> tuple[Callable[[], None], ...]:
        return (self.submit, self.ask, self.ask, self.ask_again, self.stop_asking, self.activate, self.activate,
                self.job_ends, self.job_ends, self.report, self.report, self.renew, self.silence, self.time_passes,
                self.machine_ends,                self.give_back)  # fmt: skip

    def settle(self) -> None:
        """Nothing is lost any more, and nobody wants anything: how it all ends."""
        while self.network:
            self.network.pop()()
        for claim in list(self.asked):
            self.feed(claim, S.NOT_ANSWERED)
            del self.asked[claim]
        for claim in list(self.machine.claims):
            self.ends_on(claim)
        for key in list(self.reports):
            self.hear(key)
        for claim in list(self.queue.claims):
            self.end(claim, S.GIVEN_BACK)
        while self.network:
            self.network.pop()()
        self.clock += 2 * LEASE
        self.apply(requests.expire(self.machine, self.now))
        for number in range(1, self.minted + 1):
            self.feed(f"c{number}", S.LEASE_OVER)
        self.check()

    def check(self) -> None:
        """What must hold at any moment."""
        live = [claim for claim in self.machine.claims.values() if claim.attempt is not None]
        jobs = [claim.attempt.job for claim in live if claim.attempt is not None]
        assert len(set(jobs)) == len(jobs), "two attempts of a job overlap"
        waiting = {job for _, job, _ in self.reports}
        assert not waiting & set(jobs), "a job is run again although its result waits"
        static = [claim.parent for claim in self.machine.claims.values() if claim.whole]
        assert len(set(static)) == len(static), "two claims have one static slot"
        divided = [claim.resources for claim in self.machine.claims.values() if not claim.whole]
        assert sum(each.cpus for each in divided) <= PART.cpus
        assert sum(each.memory for each in divided) <= PART.memory
        assert all(times == 1 for times in self.ended.values()), "a claim ends twice"
        assert all(times == 1 for times in self.completed.values()), "a job is completed twice"
        for claim, held in self.queue.claims.items():
            assert held.job is None or claim == self.queue.jobs[held.job].job.claim

    # -- the schedd ----------------------------------------------------------------------------------------------------

    def _witness(self, claim: str, before: ClaimState, stimulus: ClaimStimulus, after: ClaimState) -> None:
        del before, stimulus
        self._expected = claim, after

    def feed(self, claim: str, stimulus: ClaimStimulus) -> tuple[ClaimInstruction, ...]:
        """As all shells do; what was expected of the claim before is what it is."""
        if self._expected is not None:
            name, expected = self._expected
            assert expected == self.states.state(name), f"{name} is not what was said of it"
        return self.states.feed(claim, stimulus)

    def record(self, stream: str, *events: Event) -> None:
        self._expected = self._expected if stream.startswith("claim") else None
        for event in events:
            self.queue.apply(stream, event, int(self.clock))
            if isinstance(event, ClaimEnded):
                self.ended[event.claim] += 1
            elif isinstance(event, JobCompleted):
                self.completed[JobId.parse(stream.removeprefix("job/"))] += 1

    def say(self, job: JobId, command: Command) -> bool:
        """Whether anything is recorded of it."""
        entry = self.queue.jobs.get(job)
        events = decide(entry.job, command) if entry is not None else []
        self.record(job_stream(job), *events)
        return bool(events)

    def submit(self) -> None:
        if len(self.queue.jobs) < JOBS // 2:
            self.submitted += 1
            event = ClusterSubmitted(
                cluster=self.submitted, owner="eve", ad=AD, columns=[], rows=[[]] * (JOBS // 2)
            )
            self.record(f"cluster/{self.submitted}", event)

    def next_job(self) -> JobId | None:
        key = next(((s, a) for s, all_ in self.queue.demand.on_machines.items() for a in all_), None)
        return None if key is None else self.queue.demand.next_job(*key)

    def ask(self) -> None:
        if self.next_job() is None or len(self.asked) > 4:
            return
        self.minted += 1
        claim = f"c{self.minted}"
        self.feed(claim, S.REQUESTED)
        command = RequestClaims(
            schedd="ap",
            slot=f"slot{self.chance.randrange(1, 4)}@m",
            capability="right",
            submitter="eve",
            job=AD,
            claims=[ClaimKey(claim, "s")],
            lease=LEASE,
        )
        if (
            self.machine.claims and self.chance.random() < 0.2
        ):  # one that the machine likes better than what it has
            current = self.chance.choice(list(self.machine.claims.values()))
            command = msgspec.structs.replace(
                command,
                slot=self.machine.facts.name_of(current),
                capability=preemption.capability(self.machine, current),
                job={**AD, "Liking": current.rank + 1},
            )
        self.asked[claim] = command
        self.send(lambda: self.requested(command))

    def ask_again(self) -> None:
        """A lost answer is asked for again, under the same id."""
        if self.asked:
            command = self.chance.choice(list(self.asked.values()))
            self.send(lambda: self.requested(command))

    def stop_asking(self) -> None:
        if self.asked and self.chance.random() < 0.3:
            claim = self.chance.choice(list(self.asked))
            del self.asked[claim]
            self.owe(claim, self.feed(claim, S.NOT_ANSWERED))

    def decided(self, claim: str, reply: ClaimsDecided) -> None:
        if claim not in self.asked:
            return  # nobody waits for it any more
        if reply.waiting:
            self.feed(claim, S.DEFERRED)
            return
        slot = self.asked.pop(claim).slot
        if not reply.granted:
            self.feed(claim, S.REFUSED)
            return
        job = self.next_job()
        if job is None:
            self.owe(claim, self.feed(claim, S.NOT_NEEDED))
            return
        self.feed(claim, S.ASSIGNED)
        granted = ClaimGranted(
            claim=claim,
            startd="m",
            slot=slot,
            slot_ad={},
            submitter="eve",
            autocluster=self.queue.autocluster(job),
            lease=LEASE,
        )
        self.record(f"claim/{claim}", granted)
        self.assign(claim, job)

    def assign(self, claim: str, job: JobId) -> None:
        expected = self._expected
        self.say(job, Assign(claim=claim, slot="s", startd="m"))
        self._expected = expected

    def owe(self, claim: str, instructions: tuple[ClaimInstruction, ...]) -> None:
        if {ClaimInstruction.RELEASE, ClaimInstruction.RELEASE_LATER} & set(instructions):
            self.send(lambda: self.released(claim))

    def end(self, claim: str, stimulus: ClaimStimulus, ending: Ending = LOST) -> None:
        """As `ClaimEnds` does."""
        job = self.queue.claims[claim].job if claim in self.queue.claims else None
        instructions = self.feed(claim, stimulus)
        if ClaimInstruction.END_ATTEMPT in instructions:
            assert job is not None
            instructions = self.states.feed(claim, S.ALL_LOST)
            state = self.queue.jobs[job].job
            self.say(job, End(state.attempt.number, claim, AttemptResult(ending=ending)))
        if ClaimInstruction.RECORD_END in instructions:
            self.record(f"claim/{claim}", ClaimEnded(claim=claim, reason="r"))
        self.owe(claim, instructions)

    def give_back(self) -> None:
        idle = [claim for claim, held in self.queue.claims.items() if held.job is None]
        if idle:
            self.end(self.chance.choice(idle), S.GIVEN_BACK)

    def hear(self, key: tuple[str, JobId, int]) -> None:
        """A final report; it is confirmed, and the claim has its next job, or ends."""
        claim, job, attempt = key
        self.say(job, End(attempt, claim, AttemptResult(exit=ExitRecord(code=0))))
        if self.reports.pop(key, False):
            self.end(claim, S.ENDED_THERE)
        held = self.queue.claims.get(claim)
        if held is None or held.job is not None:
            return
        following = self.next_job()
        if following is None or self.chance.random() < 0.1:
            self.end(claim, S.GIVEN_BACK)
        else:
            self.feed(claim, S.ASSIGNED)
            self.assign(claim, following)

    def renew(self) -> None:
        claims = list(self.queue.claims)
        self.send(lambda: self.asked_alive(claims))

    def answered(self, claims: list[str], unknown: list[str], extra: list[str]) -> None:
        for claim in claims:
            if claim not in unknown:
                if ClaimInstruction.RECORD_RECONNECTION in self.feed(claim, S.RENEWED):
                    job = self.queue.claims[claim].job
                    assert job is not None
                    self._expected = None
                    self.say(job, Reconnect(self.queue.jobs[job].job.attempt.number, claim))
            else:
                self.end(claim, S.NOT_FOUND)
        for claim in extra:
            if self.states.state(claim).phase in {ClaimPhase.OVER, ClaimPhase.RETURNING}:
                self.owe(claim, self.feed(claim, S.LISTED))

    def silence(self) -> None:
        for claim, held in list(self.queue.claims.items()):
            if held.job is None:
                continue
            state = self.queue.jobs[held.job].job
            events = decide(state, Disconnect(state.attempt.number, claim, "r"))
            if events:
                self.feed(claim, S.SILENCE)
                self.record(job_stream(held.job), *events)

    def time_passes(self) -> None:
        """A lease is over on both sides, first there."""
        if self.chance.random() < 0.1 and self.queue.claims:
            claim = self.chance.choice(list(self.queue.claims))
            if claim in {name for name, _, _ in self.reports}:
                return  # a machine that has answered for it would have kept the lease
            if (there := self.machine.claims.get(claim)) is not None:
                self.apply(requests.end_claim(there, StopOrder(LOST, hard=True), self.now))
                self.ends_on(claim, killed=True)
            if claim not in self.machine.claims:
                self.end(claim, S.LEASE_OVER)

    # -- the machine ---------------------------------------------------------------------------------------------------

    def apply(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, ClaimRemoved):
                there = {**self.machine.claims, **self.machine.waiting}
                assert change.claim in there, "a claim ends that is not there"
            self.machine.apply(change)

    def requested(self, command: RequestClaims) -> None:
        reply, changes = requests.request_claims(self.machine, command, self.now)
        self.apply(changes)
        self.send(lambda: self.decided(command.claims[0].claim, reply))

    def activate(self) -> None:
        """A shadow asks for the attempt of a job on its claim, perhaps late."""
        with_job = [(claim, held.job) for claim, held in self.queue.claims.items() if held.job is not None]
        if not with_job:
            return
        claim, job = self.chance.choice(with_job)
        attempt = self.queue.jobs[job].job.attempt.number
        self.send(lambda: self.activated(claim, job, attempt))

    def activated(self, claim: str, job: JobId, attempt: int) -> None:
        what = Activation(
            key=ClaimKey(claim, "s"), job=job, attempt=attempt, ad=AD, inputs=[], shadow="shadow"
        )
        result, changes = activation.activate(self.machine, what, self.now)
        self.apply(changes)
        if result.code == 0:
            self.send(lambda: self.began(job, attempt, claim))

    def began(self, job: JobId, attempt: int, claim: str) -> None:
        self.say(job, Begin(attempt, claim, 1, 1.0))

    def machine_ends(self) -> None:
        """The machine's owner does not want a claim any more on which nothing runs."""
        idle = [claim for claim in self.machine.claims.values() if claim.attempt is None]
        if idle and self.chance.random() < 0.2:
            self.apply(requests.end_claim(self.chance.choice(idle), StopOrder(LOST), self.now))

    def job_ends(self) -> None:
        busy = [name for name, claim in self.machine.claims.items() if claim.attempt is not None]
        if busy:
            self.ends_on(self.chance.choice(busy))

    def ends_on(self, name: str, *, killed: bool = False) -> None:
        """The attempt on a claim is over; its report waits until it is confirmed."""
        claim = self.machine.claims.get(name)
        if claim is None or claim.attempt is None:
            return
        result = AttemptResult(ending=LOST) if killed else AttemptResult(exit=ExitRecord(code=0))
        report = Report(
            claim=name,
            attempt=claim.attempt.attempt,
            sequence=claim.sequence + 1,
            job=claim.attempt.job,
            body=FinalReport(result=result),
        )
        self.apply(activation.over(self.machine, report, self.now))
        if not killed:
            self.reports[name, claim.attempt.job, claim.attempt.attempt] = name not in self.machine.claims

    def report(self) -> None:
        if self.reports:
            key = self.chance.choice(list(self.reports))
            self.send(lambda: self.hear(key))

    def asked_alive(self, claims: list[str]) -> None:
        command = Alive(
            schedd="ap", claims=[ClaimKey(claim, "s") for claim in claims], deadline=self.clock + LEASE
        )
        reply, changes = requests.alive(self.machine, command, self.now)
        self.apply(changes)
        reported = {claim for claim, _, _ in self.reports}
        unknown = [claim for claim in reply.unknown if claim not in reported]
        self.send(lambda: self.answered(claims, unknown, reply.extra))

    def released(self, claim: str) -> None:
        """The job that runs there is told to end, and ends; the schedd hears that the startd knows."""
        self.apply(requests.release(self.machine, [ClaimKey(claim, "s")], "r", self.now))
        self.send(lambda: self.confirmed(claim))

    def confirmed(self, claim: str) -> None:
        self.feed(claim, S.CONFIRMED)


def on_the_way(world: ClaimWorld) -> int:
    """How many claims are asked for or on record."""
    return sum(world.states.state(f"c{n}").phase in {*ASKING, *ON_RECORD} for n in range(1, world.minted + 1))
