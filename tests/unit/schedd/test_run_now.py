"""
What a schedd makes of startds that have others make room, of those that do not say, and of a machine that is its own.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.runtime.local_startd import LocalStartd, leave_word
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.served import Endpoints
from kettle.testing.services import eventually
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.run_now import REMEMBERED_S, RunNowCommands
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.local_universe import LocalUniverse
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad, Scalar
from kettle_wire.commands.schedd import RUN_NOW, MatchedSlot, RunNow
from kettle_wire.commands.startd import (
    RELEASE,
    REQUEST_CLAIMS,
    ClaimsDecided,
    Done,
    Release,
    RequestClaims,
)
from kettle_wire.events import ClaimEnded, ClaimGranted, ClusterSubmitted, JobAssigned, JobHeld, JobStarted
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.jobs import JobId

EVE = user("eve")
RUNS, URGENT = JobId(1, 0), JobId(1, 1)


async def so(condition: Callable[[], bool]) -> None:
    """Wait until something is true."""

    async def look() -> bool:
        return condition()

    await eventually(look)


class Startd:
    """
    A machine that says the same to all requests for claims until it is told another answer; None: nothing at all.
    """

    def __init__(self) -> None:
        self.says: str | None = "waiting"
        self.asked: list[RequestClaims] = []
        self.released: list[str] = []

    async def request_claims(self, command: RequestClaims, caller: Identity) -> ClaimsDecided:
        del caller
        self.asked.append(command)
        if self.says is None:
            await asyncio.Event().wait()
        names = [key.claim for key in command.claims]
        if self.says == "waiting":
            return ClaimsDecided(granted=[], clock=1.0, waiting=names)
        return ClaimsDecided(granted=[], clock=1.0, reason=self.says or "")

    async def release(self, command: Release, caller: Identity) -> Done:
        del caller
        self.released += [key.claim for key in command.claims]
        return Done()

    @property
    def claims(self) -> set[str]:
        """All that it was asked for."""
        return {key.claim for command in self.asked for key in command.claims}


class Schedd:
    """A queue with a job that runs and one that is urgent, as wired in a schedd."""

    def __init__(
        self, recorder: QueueRecorder, claims: ClaimLifecycle, home_jobs: LocalUniverse, startd: Startd
    ) -> None:
        self.recorder, self.claims, self.home_jobs, self.startd = recorder, claims, home_jobs, startd
        self.restart()

    def restart(self) -> None:
        """Remember nothing but what is recorded."""
        run_now = RunNowCommands(self.recorder, self.claims.requester).run_now
        self.asked = Endpoints(
            [CommandPipeline(self.recorder).command(RUN_NOW, run_now, remember=REMEMBERED_S)]
        )

    async def now(self, command: str) -> JobId:
        """What `kettle now` asks, under an id."""
        request = RunNow(id=command, job=URGENT, instead_of=[RUNS])
        return (await self.asked.ask(RUN_NOW, request, EVE)).job

    async def refused(self, command: str) -> tuple[str, str]:
        with pytest.raises(RefusedError) as refusal:
            await self.now(command)
        return refusal.value.code, str(refusal.value)

    async def submit(self, ad: Ad, *, count: int) -> None:
        number = self.recorder.queue.newest_cluster + 1
        rows: list[list[Scalar]] = [[str(proc)] for proc in range(count)]
        event = ClusterSubmitted(
            cluster=number, owner="eve", ad={"Cmd": "x", **ad}, columns=["Args"], rows=rows
        )
        await self.recorder.record([(f"cluster/{number}", event)])


@asynccontextmanager
async def schedd(home: Path, *, request_claim_timeout: float = 60.0) -> AsyncGenerator[Schedd]:
    settings = ScheddSettings(
        name="ap",
        local_jobs_interval=3600.0,
        home=str(home),
        lease=0.04,
        claim_deadline=0.02,
        request_claim_timeout=request_claim_timeout,
    )
    world, log, startd = MemoryWorld(), MemoryLog(), Startd()
    machine, bus = await world.connect(daemon("startd")), await world.connect(daemon("schedd"))
    answers: list[Served[Any, Any]] = [
        Served(REQUEST_CLAIMS, startd.request_claims),
        Served(RELEASE, startd.release),
    ]
    await machine.serve("startd", "ep", answers, version="1.0.0")
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        queue = Queue("ap")
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        secrets = ClaimSecrets(bytes(32))
        shadows = ShadowDispatch(
            bus, queue, secrets, AttributeSeal([bytes(32)]), tasks, Telemetry(), interval=1.0
        )
        claims = ClaimLifecycle(bus, recorder, shadows, secrets, tasks, settings)
        ap = Schedd(recorder, claims, LocalUniverse(queue, claims.requester, settings), startd)
        await ap.submit({}, count=2)
        granted = ClaimGranted(
            claim="c", startd="ep", slot="s@ep", slot_ad={}, submitter="eve", autocluster=0, lease=60.0
        )
        await recorder.record([
            ("claim/c", granted),
            ("job/1.0", JobAssigned(attempt=1, claim="c", slot="s@ep", startd="ep")),
            ("job/1.0", JobStarted(attempt=1, pid=5, at=1.0)),
        ])  # fmt: skip
        yield ap
        startd.says = "enough"
        await so(lambda: not claims.requester.asked.jobs)
        shadows.close()
        committing.cancel()


async def test_now_is_accepted_once_per_id_and_looked_at_anew_under_another(tmp_path: Path) -> None:
    """
    A repeat has the first answer; after a swap that came to nothing, the same wish is asked of the machine again.
    """
    async with schedd(tmp_path) as ap:
        assert {URGENT} == {*await asyncio.gather(ap.now("one"), ap.now("one"))}
        assert URGENT == await ap.now("one")
        assert 1 == len(ap.startd.claims)
        ap.startd.says = "the claim has lapsed"
        await so(lambda: not ap.claims.requester.asked.jobs)

        said = await ap.refused("two")

        assert ("refused", "the machine refuses it: the claim has lapsed; nothing was changed") == said
        assert 2 == len(ap.startd.claims)
        assert URGENT == await ap.now("one")
        assert 2 == len(ap.startd.claims)


@pytest.mark.parametrize("limits", [{}, {"x": 1.0}])
async def test_a_swap_that_came_to_nothing_counts_for_nothing(
    tmp_path: Path, limits: dict[str, float]
) -> None:
    """
    What is asked for counts while it is asked for: a count that falls without having risen would let a submitter have more than its quota.
    """
    async with schedd(tmp_path) as ap:
        queue = ap.recorder.queue
        granted = msgspec.structs.replace(
            queue.claims["c"].granted, claim="d", limits=limits, autocluster=queue.autocluster(URGENT)
        )
        await ap.submit({}, count=1)
        await ap.recorder.record([
            ("claim/d", granted),
            ("job/2.0", JobAssigned(attempt=1, claim="d", slot="s@ep", startd="ep")),
            ("job/2.0", JobStarted(attempt=1, pid=6, at=1.0)),
        ])  # fmt: skip
        before = ap.claims.requester.count("eve")
        await ap.asked.ask(RUN_NOW, RunNow(id="x", job=URGENT, instead_of=[JobId(2, 0)]), EVE)
        assert before + 1 == ap.claims.requester.count("eve")
        assert limits == ap.claims.requester.asked.limits.of("eve")
        ap.startd.says = "the claim has lapsed"
        await so(lambda: not ap.claims.requester.asked.jobs)

        assert before == ap.claims.requester.count("eve")
        assert {} == ap.claims.requester.asked.limits.of("eve")


async def test_the_answer_of_now_outlives_its_schedd(tmp_path: Path) -> None:
    """It is stored like the answers of all commands: the next schedd has it."""
    async with schedd(tmp_path) as ap:
        await ap.now("one")
        ap.restart()

        assert URGENT == await ap.now("one")
        assert 1 == len(ap.startd.claims)


async def test_nobody_says_that_nothing_changed_who_does_not_know(tmp_path: Path) -> None:
    """
    The machine may have ended the jobs and only its answer was lost; a repeat is told the same and asks no more.
    """
    async with schedd(tmp_path) as ap:
        ap.startd.says = None

        code, said = await ap.refused("one")
        again, tries = await ap.refused("one"), len(ap.startd.asked)

        assert "unknown" == code == again[0]
        assert "the jobs may have been told to make room, or not" in said
        assert "nothing was changed" not in said
        assert 3 == tries
        ap.startd.says = "no"


async def test_who_gave_a_wrong_id_or_another_ones_job_is_refused(tmp_path: Path) -> None:
    """The id is looked at like that of every command."""
    async with schedd(tmp_path) as ap:
        assert "malformed" == (await ap.refused(""))[0]
        assert "malformed" == (await ap.refused("x" * 65))[0]
        with pytest.raises(
            RefusedError,
            match=r"may not have job 1\.\d run now, or make room, which is of \w+: \w+ may alone",
        ):
            await ap.asked.ask(RUN_NOW, RunNow(id="one", job=URGENT, instead_of=[RUNS]), user("bob"))


@pytest.mark.parametrize(("limits", "ad"), [({}, {"ConcurrencyLimits": "x"}), ({"x": 1.0}, {})])
async def test_limits_are_not_swapped(tmp_path: Path, limits: dict[str, float], ad: Ad) -> None:
    """
    A claim in the place of another would be counted as that one, so neither a job that uses limits takes another's place nor does another take its.
    """
    async with schedd(tmp_path) as ap:
        granted = msgspec.structs.replace(ap.recorder.queue.claims["c"].granted, claim="d", limits=limits)
        await ap.submit({}, count=1)
        await ap.submit({"RequestCpus": 2, **ad}, count=1)
        await ap.recorder.record([
            ("claim/d", granted),
            ("job/2.0", JobAssigned(attempt=1, claim="d", slot="s@ep", startd="ep")),
            ("job/2.0", JobStarted(attempt=1, pid=6, at=1.0)),
        ])  # fmt: skip

        with pytest.raises(RefusedError, match="concurrency limits") as refusal:
            await ap.asked.ask(RUN_NOW, RunNow(id="x", job=JobId(3, 0), instead_of=[JobId(2, 0)]), EVE)

        assert "refused" == refusal.value.code
        assert [] == ap.startd.asked
        assert URGENT == await ap.now("one")


async def test_a_job_does_not_wait_for_one_slot_for_ever(tmp_path: Path) -> None:
    """
    The one that makes room may have days for it: after a while its slot is given up, and the job is shown to all others.
    """
    shown: list[int] = []
    async with schedd(tmp_path, request_claim_timeout=0.05) as ap:
        ap.claims.requester.on_refused(lambda: shown.append(ap.claims.requester.asked.jobs.total()))
        number = ap.recorder.queue.autocluster(URGENT)
        match = MatchedSlot(
            submitter="eve", autocluster=number, count=1, slot="s@ep", startd="ep", capability="k"
        )
        ap.claims.requester.request_matched(match)
        assert 1 == ap.claims.requester.asked.jobs.total()

        await so(lambda: bool(shown))

        assert [0] == shown
        assert ap.startd.claims == set(ap.startd.released)


async def test_local_jobs_are_started_a_hundred_at_a_time(tmp_path: Path) -> None:
    """However many may start: one look asks for a hundred claims, and the next one for more."""
    leave_word(tmp_path, LocalStartd(startd="ep", slot="local@ep", capability="ours"))
    async with schedd(tmp_path) as ap:
        await ap.submit({"JobUniverse": 12}, count=150)
        counts: list[int] = []
        for _ in range(3):
            await ap.home_jobs.start_allowed()
            counts.append(ap.claims.requester.asked.jobs.total())

        assert [100, 150, 150] == counts


async def test_what_happens_in_the_queue_does_not_make_more_looks(tmp_path: Path) -> None:
    """
    Local jobs wait, and very much else is recorded: that is one look, and another one when it has calmed down.
    """
    looks: list[int] = []
    event = JobHeld(code=1, reason="")
    async with schedd(tmp_path) as ap:
        await ap.submit({"JobUniverse": 12}, count=1)

        async def look() -> None:
            looks.append(len(looks))

        ap.home_jobs.start_allowed = look  # type: ignore[method-assign]  # counted instead of done
        running = asyncio.create_task(ap.home_jobs.start_jobs())
        for _ in range(1000):
            ap.home_jobs.on_event(event)
            await asyncio.sleep(0)

        assert (
            0 < len(looks) < 10
        )  # one, where the machine does not pause for longer than it takes to calm down
        await so(lambda: len(looks) > 1)
        running.cancel()


async def test_a_refusal_is_over_when_a_local_job_is(tmp_path: Path) -> None:
    """The machine had no room; the claim that is given back makes some: nobody waits for the interval."""
    leave_word(tmp_path, LocalStartd(startd="ep", slot="local@ep", capability="ours"))
    async with schedd(tmp_path) as ap:
        await ap.submit({"JobUniverse": 12}, count=1)
        ap.startd.says = "the other local jobs leave not enough"
        running = asyncio.create_task(ap.home_jobs.start_jobs())
        await so(lambda: "refuses it: the other local jobs" in ap.home_jobs.explain(JobId(2, 0)))
        before = len(ap.startd.asked)

        ap.home_jobs.on_event(ClaimEnded(claim="other", reason=""))

        await so(lambda: len(ap.startd.asked) > before)
        running.cancel()
