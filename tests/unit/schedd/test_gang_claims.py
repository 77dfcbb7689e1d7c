"""
The claims of a job with several nodes: gathered and given back by a schedd, against machines that say what they are told to.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kettle.bus.ports import Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.nodes import HOSTS
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.services import eventually
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.gangs import GangClaims
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.domain.claims.states import ClaimStimulus
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode
from kettle_wire.commands.attempt_reports import Attempt, ShadowSync
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.commands.startd import (
    RELEASE,
    REQUEST_CLAIMS,
    ClaimsDecided,
    Done,
    GrantedClaim,
    Release,
    RequestClaims,
)
from kettle_wire.events import ClusterSubmitted
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

JOB = JobId(1, 0)
LOST = Ending(code=VacateCode.ReconnectFailed, reason="no contact")


async def so(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""

    async def look() -> bool:
        return condition()

    await eventually(look)


class Startd:
    """A machine that grants what it is asked for, refuses it, or says nothing at all."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.says: str | None = ""
        self.asked = 0
        self.held: set[str] = set()

    async def request_claims(self, command: RequestClaims, caller: Identity) -> ClaimsDecided:
        del caller
        self.asked += 1
        names = [key.claim for key in command.claims]
        if self.says is None:
            self.held.update(names)
            await asyncio.Event().wait()
        if self.says:
            return ClaimsDecided(granted=[], clock=1.0, reason=self.says)
        self.held.update(names)
        granted = [
            GrantedClaim(claim=name, slot=f"slot1_{n}@{self.name}", ad={"Machine": f"{self.name}.example"})
            for n, name in enumerate(names)
        ]
        return ClaimsDecided(granted=granted, clock=1.0)

    async def release(self, command: Release, caller: Identity) -> Done:
        del caller
        self.held.difference_update(key.claim for key in command.claims)
        return Done()


class Schedd:
    """A queue with one job of three nodes, as wired in a schedd, and two machines."""

    def __init__(
        self,
        recorder: QueueRecorder,
        claims: ClaimLifecycle,
        gangs: GangClaims,
        shadows: ShadowDispatch,
        log: MemoryLog,
        machines: tuple[Startd, Startd],
    ) -> None:
        self.recorder, self.claims, self.gangs, self.shadows = recorder, claims, gangs, shadows
        self.log, self.machines, self.queue = log, machines, recorder.queue

    def match(self, *, slots: int = 3, nodes: int = 3) -> None:
        """The negotiator offers one slot of the first machine, and the others of the second."""
        self.gangs.request_matched(
            MatchedSlot(
                submitter="eve",
                autocluster=self.queue.autocluster(JOB),
                count=count,
                slot=f"slot1@{one.name}",
                startd=one.name,
                capability="secret",
                nodes=nodes,
            )
            for one, count in zip(self.machines, (1, slots - 1), strict=True)
        )

    def gives_back(self) -> bool:
        """
        Try again to give back what is to be; whether no machine has a claim any more, and none is on record.
        """
        self.claims.releases.retry_releases()
        return not (self.queue.claims or any(machine.held for machine in self.machines))

    @property
    def refusal(self) -> str:
        """Why the job did not get its slots the last time."""
        return self.claims.requester.refusals.last_refusal(("eve", self.queue.autocluster(JOB)))

    async def replayed(self) -> Queue:
        """What the next schedd would know."""
        await self.recorder.shard.committed()
        replay = Replay("ap")
        async for frame in self.log.read("schedd.ap"):
            replay.feed(frame)
        return replay.queue()


@asynccontextmanager
async def schedd(*, gang_deadline: float = 60.0) -> AsyncGenerator[Schedd]:
    settings = ScheddSettings(name="ap", claim_deadline=60.0, gang_deadline=gang_deadline)
    world, log, machines = MemoryWorld(), MemoryLog(), (Startd("one"), Startd("two"))
    for machine in machines:
        served: list[Served[Any, Any]] = [
            Served(REQUEST_CLAIMS, machine.request_claims),
            Served(RELEASE, machine.release),
        ]
        await (await world.connect(daemon("startd"))).serve("startd", machine.name, served, version="1.0.0")
    bus = await world.connect(daemon("schedd"))
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        queue = Queue("ap")
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        secrets = ClaimSecrets(bytes(32))
        shadows = ShadowDispatch(
            bus, queue, secrets, AttributeSeal([bytes(32)]), tasks, Telemetry(), interval=60.0
        )
        claims = ClaimLifecycle(bus, recorder, shadows, secrets, tasks, settings)
        gangs = GangClaims(recorder, claims, shadows, tasks, settings)
        ad: Ad = {"Cmd": "x", "JobUniverse": 11, "MinHosts": 3, "MaxHosts": 3}
        event = ClusterSubmitted(cluster=1, owner="eve", ad=ad, columns=[], rows=[[]])
        await recorder.record([("cluster/1", event)])
        yield Schedd(recorder, claims, gangs, shadows, log, machines)
        gangs.close()
        shadows.close()
        committing.cancel()


async def test_a_job_is_assigned_to_all_of_its_claims_at_once() -> None:
    """Its shadow is told where each node runs, and the next schedd knows the same."""
    async with schedd() as ap:
        ap.match()
        await so(lambda: ap.queue.jobs[JOB].job.status == "running")
        claims = ap.queue.jobs[JOB].job.attempt.claims
        assert set(claims) == set(ap.queue.claims) == ap.machines[0].held | ap.machines[1].held
        assert {JOB} == {held.job for held in ap.queue.claims.values()}
        assignment = ap.shadows.assignment(JOB)
        places = [assignment.slot, *(node.slot for node in assignment.nodes)]
        assert ["slot1_0@one", "slot1_0@two", "slot1_1@two"] == places
        assert assignment.ad[HOSTS] == "one.example two.example two.example"
        after = await ap.replayed()
        assert claims == after.jobs[JOB].job.attempt.claims
        assert {JOB} == {held.job for held in after.claims.values()}


async def test_a_job_has_as_many_nodes_as_the_match_says() -> None:
    """One that may have a number of them is given those that were found together."""
    async with schedd() as ap:
        ap.match(slots=2, nodes=2)
        await so(lambda: ap.queue.jobs[JOB].job.status == "running")
        assert 2 == len(ap.queue.jobs[JOB].job.attempt.claims)


async def test_what_is_refused_in_part_is_given_back_as_a_whole() -> None:
    """At once, and the reason can be asked for."""
    async with schedd() as ap:
        ap.machines[1].says = "too late"
        ap.match()
        await so(lambda: "too late" in ap.refusal)
        await so(ap.gives_back)
        assert ap.queue.jobs[JOB].job.runnable


async def test_a_machine_that_says_nothing_is_waited_for_until_the_deadline() -> None:
    """
    What the other one granted is on record until then, without a job, so that a successor gives it back.
    """
    async with schedd() as ap:
        ap.machines[1].says = None
        ap.match()
        await so(lambda: len(ap.queue.claims) == 1)
        successor = await ap.replayed()
        assert [None] == [held.job for held in successor.claims.values()]
        assert successor.jobs[JOB].job.runnable
    async with schedd(gang_deadline=0.2) as ap:
        ap.machines[1].says = None
        ap.match()
        await so(lambda: "within 0.2 s" in ap.refusal)
        await so(ap.gives_back)
        assert ap.queue.jobs[JOB].job.runnable


async def test_too_few_slots_are_not_asked_for() -> None:
    """A part of what a job needs is of no use to it."""
    async with schedd() as ap:
        ap.match(slots=2)
        assert not ap.claims.requester.asked.jobs
        assert [0, 0] == [machine.asked for machine in ap.machines]


async def test_a_job_runs_again_when_all_of_its_claims_are_over() -> None:
    """When one is lost its shadow is told to end the others, and that nobody will report from that one."""
    async with schedd() as ap:
        ap.match()
        await so(lambda: ap.queue.jobs[JOB].job.status == "running")
        first, second, third = ap.queue.jobs[JOB].job.attempt.claims
        ap.claims.ends.lose(second, ClaimStimulus.LEASE_OVER, LOST)
        sync = ShadowSync(shadow="s", attempts=[Attempt(JOB, 1)])
        [stop] = ap.shadows.sync(sync, [JOB]).stop
        assert ([second], LOST) == (stop.lost, stop.ending)
        assert ap.queue.jobs[JOB].job.status == "running"
        ap.claims.ends.lose(first, ClaimStimulus.LEASE_OVER, LOST)
        assert ap.queue.jobs[JOB].job.status == "running"
        ap.claims.ends.lose(third, ClaimStimulus.LEASE_OVER, LOST)
        assert ap.queue.jobs[JOB].job.runnable
        assert ({}, set()) == (ap.queue.claims, ap.queue.live.lost)
