"""
A queue that lives: submissions of every kind, and whatever people, machines and an entrypoint may say of their jobs.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

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
    RemoveX,
    Suspend,
    Tell,
)
from kettle_services.schedd.domain.jobs.decide import Refused, decide
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.orders import Defer, Order
from kettle_services.schedd.domain.negotiation.reclustering import mark_significant
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.grouped_events import group_events
from kettle_services.schedd.domain.submission import routes
from kettle_wire.ads import Ad, Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord, Usage
from kettle_wire.commands.routing import Routing
from kettle_wire.event_expansion import SPAN, stream_of_cluster, stream_of_span
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    FactorySubmitted,
    JobCompleted,
    JobEdited,
    JobEvent,
    JobKept,
    JobLeft,
    JobRemoved,
    JobsChanged,
    JobVacated,
    NodeSlot,
)
from kettle_wire.jobs import JobId

AT: Final = 5_000_000
_ROUTES: Final = (
    Routing(jobs=[], route="Slurm", attributes={"JobUniverse": 9, "GridResource": "batch slurm"}),
    Routing(jobs=[], route="Pool", attributes={"RequestMemory": 7}, removed=["Blue"]),
)
_ROWS: Final[list[list[Scalar]]] = [[number % 2, number] for number in range(5)]
_KINDS: Final[Sequence[tuple[Ad, list[str], type[ClusterSubmitted]]]] = (
    ({}, ["JobPrio", "Args"], ClusterSubmitted),
    ({"Blue": 1}, ["RequestCpus", "Args"], ClusterSubmitted),
    ({"JobPrio": 2}, ["Blue", "AccountingGroup"], ClusterSubmitted),
    ({"JobUniverse": 12}, ["Args", "Blue"], ClusterSubmitted),
    ({"JobUniverse": 7}, ["JobPrio", "Blue"], ClusterSubmitted),
    ({"JobUniverse": 9, "GridResource": "batch lsf"}, ["Args", "Blue"], ClusterSubmitted),
    ({"JobUniverse": 11, "MinHosts": 2, "MaxHosts": 2}, ["Args", "Blue"], ClusterSubmitted),
    ({"AwaitsRoute": True, "x509UserProxyVOName": "cms"}, ["JobPrio", "Args"], ClusterSubmitted),
    ({"AwaitsRoute": True, "DeferralTime": 9, "Blue": 1}, ["Args", "Arch"], ClusterSubmitted),
    ({"DeferralTime": 99}, ["Args", "Blue"], ClusterSubmitted),
    ({"LeaveJobInQueue": True}, ["Args", "Blue"], ClusterSubmitted),
    ({"JobMaterializeLimit": 2}, ["Args", "JobPrio"], FactorySubmitted),
)
_GROUPS: Final = ("physics.ann", "chem.ann")
_EDITS: Final[Sequence[Ad]] = ({"JobPrio": 5}, {"JobPrio": -1}, {"RequestMemory": 64}, {"Blue": 3})


class LivingQueue:
    """Of one random sequence; each step lets something happen to one job, or to several."""

    def __init__(self, seed: int) -> None:
        self.queue = Queue("ap")
        self.cooled: set[JobId] = set()
        """Of which a clock has said, since something happened to them, that they have cooled."""
        self.due: set[JobId] = set()
        self.rows: dict[str, bytes] = {}
        """The working set."""
        self.history: list[tuple[str, Event]] = []
        self.keeps_history = False
        self._chance = random.Random(seed)
        self._numbers = 0
        self._versions: dict[JobId, int] = {}

    def step(self) -> None:
        """Something happens."""
        queue, chance = self.queue, self._chance
        if len(queue.jobs) < 12 or (len(queue.jobs) < 30 and chance.random() < 0.05):
            self._submit()
            return
        job = chance.choice(list(queue.jobs))
        what = chance.random()
        if what < 0.05:
            self._many(job)
        elif what < 0.1:
            self._time_passes(job)
        elif what < 0.15:
            self._route(job)
        elif what < 0.2:
            self._edit(job)
        elif what < 0.25:
            self._claim_ends()
        elif what < 0.251 and len(queue.significant) < 3:
            mark_significant(queue, [chance.choice(["blue", "Arch"])])
        else:
            command = self._command(job, queue.jobs[job].job)
            if command is not None:
                self._say(job, command)

    # -- what happens ------------------------------------------------------------------------------------------------

    def record(self, stream: str, event: Event, jobs: Sequence[JobId] = ()) -> None:
        """Fold one event."""
        if self.keeps_history:
            self.history.append((stream, event))
        for job in jobs:
            self._versions[job] = self._versions.get(job, 0) + 1
            self.cooled.discard(job)
            self.due.discard(job)
        for change in self.queue.apply(stream, event, AT):
            if change.state is None:
                self.rows.pop(change.stream, None)
            else:
                self.rows[change.stream] = change.state

    def _submit(self) -> None:
        ad, columns, kind = self._chance.choice(_KINDS)
        self._numbers += 1
        rows = [
            [self._chance.choice(_GROUPS) if name == "AccountingGroup" else value for name, value in zip(columns, row, strict=True)]
            for row in _ROWS
        ]  # fmt: skip
        owner, number = self._chance.choice(["ann", "bob"]), self._numbers
        if "AccountingGroup" in columns:
            owner = "ann"
        if kind is ClusterSubmitted and self._chance.random() < 0.3 and number % SPAN + len(rows) <= SPAN:
            self._numbers += len(rows) - 1
            alike = ClustersSubmitted(
                first=number, owner=owner, ad={"Cmd": "x", **ad}, columns=columns, rows=rows
            )
            self.record(stream_of_span(number), alike)
            return
        submitted = kind(cluster=number, owner=owner, ad={"Cmd": "x", **ad}, columns=columns, rows=rows)
        self.record(f"cluster/{number}", submitted)
        for first in range(0, len(rows) - 1, 2) if submitted.late else ():
            made = FactoryMaterialized(cluster=number, owner=owner, first=first, count=2)
            self.record(f"factory/{number}", made)

    def _say(self, job: JobId, command: Command) -> None:
        state = self.queue.jobs[job].job
        with suppress(Refused):
            events = decide(state, command)
            for event in self._staying(job, events):
                self.record(job_stream(job), event, [job])

    def _staying(self, job: JobId, events: list[JobEvent]) -> list[JobEvent]:
        """Jobs that want to stay are kept, as the schedd records it."""
        if "LeaveJobInQueue" not in self.queue.clusters[job.cluster].submitted.ad:
            return events
        state = self.queue.jobs[job].job
        ends = any(isinstance(event, JobCompleted) for event in events) or (
            not state.claim and any(isinstance(event, JobRemoved) for event in events)
        )
        over = state.status == "removed" and any(isinstance(event, JobVacated) for event in events)
        return [JobKept(), *events] if (ends or over) and not state.kept and state.stay != "left" else events

    def _command(self, job: JobId, state: Job) -> Command | None:
        chance, now = self._chance, _attempt(state)
        attempt, claim = now
        result = AttemptResult(exit=ExitRecord(code=0, at=2.0), usage=Usage(wall=1.0))
        failed = AttemptResult(ending=Ending(code=chance.choice([6, 1008, 1013, 1034]), reason="r"))
        commands: list[Command] = [
            Hold("r", "ann", code=chance.choice([1, 3])),
            Release("r", "ann"),
            Release("r", "ann"),
            Defer(7),
            Order("suspend", "r", "ann"),
        ]
        if chance.random() < 0.1:
            commands += [Remove("r", "ann"), RemoveX("r", "ann")]
        if state.claim:
            commands += [
                Begin(attempt, claim, 1, 1.0),
                Suspend(attempt, claim, 1, 1.0),
                Continue(attempt, claim, 1.0),
                Disconnect(attempt, claim, "r"),
                Reconnect(attempt, claim),
                Checkpoint(attempt, claim, chance.randrange(4), 1.0, Usage()),
                Tell(attempt, claim, str(chance.randrange(3)), {"Mine": 1}, []),
                End(attempt, claim, result),
                End(attempt, claim, failed, cool_down=chance.choice([0.0, 20.0])),
                End(attempt, claim, failed, more={"RequestMemory": 128}),
            ]
        elif state.runnable:
            return chance.choice([*commands, *[self._assignment(job)] * 6])
        return chance.choice(commands)

    def _assignment(self, job: JobId) -> Assign:
        """Of a claim that is free, or one that is granted for it."""
        free = [name for name, claim in self.queue.claims.items() if claim.job is None]
        nodes = 2 if self.queue.universe(job) == 11 else 1
        claims = [free.pop() if free else self._granted(job) for _ in range(nodes)]
        more = tuple(NodeSlot(claim=claim, slot="s", startd="m") for claim in claims[1:])
        return Assign(claim=claims[0], slot="s", startd="m", nodes=more)

    def _granted(self, job: JobId) -> str:
        self._numbers += 1
        name, chance = f"c{self._numbers}", self._chance
        granted = ClaimGranted(
            claim=name,
            startd=chance.choice(["m", "other/m"]),
            slot="s",
            slot_ad={},
            submitter=self.queue.submitter(job),
            autocluster=1,
            lease=9.0,
            limits=chance.choice([{}, {"matlab": 1.0}, {"matlab": 0.5, "sw": 2.0}]),
        )
        self.record(f"claim/{name}", granted)
        return name

    def _claim_ends(self) -> None:
        free = [name for name, claim in self.queue.claims.items() if claim.job is None]
        if free:
            name = self._chance.choice(free)
            self.record(f"claim/{name}", ClaimEnded(claim=name, reason="r"))

    def _many(self, job: JobId) -> None:
        """One word to all jobs of a cluster, recorded together."""
        commands: list[Command] = [Hold("r", "ann"), Release("r", "ann"), Release("s", "ann")]
        command = self._chance.choice(commands)
        changes: list[tuple[JobId, JobEvent]] = []
        for each in list(self.queue.clusters[job.cluster].jobs()):
            with suppress(Refused):
                changes += ((each, event) for event in decide(self.queue.jobs[each].job, command))
        for stream, event in group_events(changes, lambda each: self._versions.get(each, 0) + 1, fewest=2):
            jobs = [
                each for each, _ in changes if stream in {stream_of_cluster(each.cluster), job_stream(each)}
            ]
            assert jobs or not isinstance(event, JobsChanged)
            self.record(stream, event, jobs)

    def _time_passes(self, job: JobId) -> None:
        if job in self.queue.waiting.cooling:
            self.queue.cooled(job)
            self.cooled.add(job)
        elif job in self.queue.waiting.deferred:
            self.queue.due(job)
            self.due.add(job)

    def _route(self, job: JobId) -> None:
        queue, entry = self.queue, self.queue.jobs[job]
        if not queue.clusters[job.cluster].routed or entry.job.claim or entry.job.status != "idle":
            return
        number = routes.said_before(entry) + 1
        event: JobEvent | None
        if entry.routed is None and self._chance.random() < 0.8:
            ad, routing = queue.ad(job), self._chance.choice(_ROUTES)
            event = routes.route(ad, {name.lower(): name for name in ad}, routing, number)
        else:
            event = routes.unroute(entry, str(number), number)
        if event is not None:
            self.record(job_stream(job), event, [job])

    def _edit(self, job: JobId) -> None:
        state = self.queue.jobs[job].job
        if state.ended:
            self.record(job_stream(job), JobLeft(), [job])
        elif not state.claim:
            edit = JobEdited(attributes=self._chance.choice(_EDITS), by="ann")
            self.record(job_stream(job), edit, [job])


def _attempt(state: Job) -> tuple[int, str]:
    return state.attempt.number, state.claim


def lived(seed: int, steps: int) -> Iterator[LivingQueue]:
    """The queue after each of its steps."""
    living = LivingQueue(seed)
    for _ in range(steps):
        living.step()
        yield living
