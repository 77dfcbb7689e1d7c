"""The schedd's looks at its jobs: what they record, what they cost, and what they order."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Telemetry
from kettle.runtime.settings_problems import SettingsError
from kettle.testing.bus_adapters import MemoryWorld
from kettle.testing.served import Endpoints
from kettle.testing.services import eventually
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.gangs import GangClaims
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.attempt_reports import AttemptReports
from kettle_services.schedd.domain.jobs.policy import SystemRule
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.commands.attempt_reports import (
    REPORT,
    SYNC,
    Attempt,
    AttemptReport,
    Ended,
    ReportAttempts,
    ShadowSync,
    Used,
)
from kettle_wire.commands.shadow import Stop
from kettle_wire.events import (
    ClaimGranted,
    ClusterSubmitted,
    JobAssigned,
    JobHeld,
    JobReleased,
    JobStarted,
    Usage,
)
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

SHADOW = daemon("shadow")
JOB = JobId(1, 0)
CLAIM = "c"


class Schedd:
    """A queue and who looks at its policies, as wired in a schedd."""

    def __init__(self, recorder: QueueRecorder, policies: Policies, attempt_reports: AttemptReports) -> None:
        self.recorder = recorder
        self.queue = recorder.queue
        self.policies = policies
        pipeline = CommandPipeline(recorder)
        self.asked = Endpoints([
            pipeline.command(SYNC, attempt_reports.sync_shadow),
            pipeline.command(REPORT, attempt_reports.record_reports),
        ])  # fmt: skip

    async def submit(self, ad: Ad, *, count: int = 1) -> None:
        number = self.queue.newest_cluster + 1
        rows: list[list[Scalar]] = [[str(proc)] for proc in range(count)]
        event = ClusterSubmitted(
            cluster=number, owner="eve", ad={"Cmd": "x", **ad}, columns=["Args"], rows=rows
        )
        await self.recorder.record([(f"cluster/{number}", event)])

    async def run(self, ad: Ad) -> None:
        """Submit job 1.0, and have its first attempt begun."""
        await self.submit(ad)
        await self.start(1)

    async def start(self, attempt: int) -> None:
        granted = ClaimGranted(
            claim=CLAIM, startd="ep", slot="s@ep", slot_ad={}, submitter="eve", autocluster=0, lease=60.0
        )
        await self.recorder.record([
            (f"claim/{CLAIM}", granted),
            ("job/1.0", JobAssigned(attempt=attempt, claim=CLAIM, slot="s@ep", startd="ep")),
            ("job/1.0", JobStarted(attempt=attempt, pid=5, at=time.time())),
        ])  # fmt: skip

    async def told(self, news: Ended | Used) -> None:
        report = AttemptReport(job=JOB, attempt=1, claim=CLAIM, news=news)
        await self.asked.ask(REPORT, ReportAttempts(shadow="s", reports=[report]), SHADOW)

    async def stops(self) -> list[Stop]:
        """What a shadow that looks after job 1.0 is told to end."""
        request = ShadowSync(shadow="s", attempts=[Attempt(JOB, self.queue.jobs[JOB].job.attempt.number)])
        return (await self.asked.ask(SYNC, request, SHADOW)).stop


@asynccontextmanager
async def schedd(settings: ScheddSettings | None = None) -> AsyncGenerator[Schedd]:
    settings = settings or ScheddSettings(name="ap")
    bus, log = await MemoryWorld().connect(), MemoryLog()
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
        policies = Policies(recorder, shadows, settings)
        yield Schedd(
            recorder,
            policies,
            AttemptReports(
                recorder,
                claims,
                GangClaims(recorder, claims, shadows, tasks, settings),
                shadows,
                policies,
                ScheddSettings(max_failures=9),
            ),
        )
        shadows.close()
        committing.cancel()


async def test_a_look_holds_releases_and_removes() -> None:
    """Each look carries out one verdict of each job, and the next one sees what came of it."""
    async with schedd() as ap:
        await ap.submit(
            {
                "PeriodicHold": Expr("NumHolds == 0"),
                "PeriodicRelease": True,
                "PeriodicRemove": Expr("NumHolds == 1"),
            }
        )
        seen: list[str] = []
        for _ in range(3):
            await ap.policies.evaluate_all()
            seen.append(ap.queue.jobs[JOB].job.status if JOB in ap.queue.jobs else "gone")
        assert ["held", "idle", "gone"] == seen


async def test_measured_use_is_seen_while_the_attempt_lives() -> None:
    """
    It is in the ad and decides, and is forgotten with the attempt; what is said of another attempt is not believed.
    """
    async with schedd() as ap:
        await ap.run({"PeriodicHold": Expr("MemoryUsage > 100")})
        await ap.policies.evaluate_all()
        assert ap.queue.jobs[JOB].job.status == "running"
        await ap.told(Used(usage=Usage(wall=10.0, user_cpu=5.0, memory_kib=200 * 1024)))
        assert (200, 5.0) == (ap.queue.ad(JOB)["MemoryUsage"], ap.queue.ad(JOB)["RemoteUserCpu"])
        await ap.policies.evaluate_all()
        assert ["the job was held"] == [stop.ending.reason for stop in await ap.stops()]
        await ap.told(Ended(result=AttemptResult(ending=Ending(code=1022, reason="held"))))
        assert {} == ap.queue.live.measured
        await ap.told(Used(usage=Usage(memory_kib=1)))
        assert {} == ap.queue.live.measured


async def test_a_vacate_is_ordered_until_the_attempt_is_over() -> None:
    """
    Nothing is recorded of it before it has happened; each exchange with the shadow repeats the order, with code and reason.
    """
    async with schedd() as ap:
        await ap.run({"PeriodicVacate": True})
        await ap.policies.evaluate_all()
        await ap.policies.evaluate_all()
        assert [[(1000, 1)]] * 2 == [
            [(stop.ending.code, stop.attempt) for stop in await ap.stops()] for _ in range(2)
        ]
        assert ap.queue.jobs[JOB].job.status == "running"
        await ap.told(Ended(result=AttemptResult(ending=Ending(code=1000, reason="it asked for it"))))
        assert ("idle", 1) == (ap.queue.jobs[JOB].job.status, ap.queue.jobs[JOB].job.attempt.number)
        assert 1000 == ap.queue.ad(JOB)["VacateReasonCode"]


async def test_an_attempt_that_is_being_ended_is_left_alone() -> None:
    """A job that is held or released while its attempt lives is looked at again when that is over."""
    async with schedd() as ap:
        await ap.run({"PeriodicHold": Expr("NumHolds == 0"), "PeriodicRelease": True})
        for _ in range(3):
            await ap.policies.evaluate_all()
        assert ap.queue.jobs[JOB].job.status == "held"
        await ap.told(Ended(result=AttemptResult(ending=Ending(code=1022, reason="held"))))
        await ap.policies.evaluate_all()
        assert ap.queue.jobs[JOB].job.status == "idle"


@pytest.mark.parametrize(
    ("ad", "status", "completions"),
    [
        ({"OnExitHold": Expr("ExitCode == 3 && RemoteUserCpu == 8.0")}, "held", 1),
        ({"OnExitRemove": Expr("NumJobCompletions > 1")}, "idle", 1),
        ({"PeriodicHold": Expr("ExitCode == 3")}, "held", 1),
        ({"AllowedJobDuration": 0}, "held", 1),
    ],
)
async def test_an_exit_that_does_not_end_the_job(ad: Ad, status: str, completions: int) -> None:
    """
    The attempt is over, the claim is free, and the ad says how the program ended; a repeat of the report changes nothing.
    """
    async with schedd() as ap:
        await ap.run({**ad, "Requirements": False})
        for _ in range(2):
            await ap.told(
                Ended(
                    result=AttemptResult(
                        exit=ExitRecord(code=3, at=time.time()), usage=Usage(wall=10.0, user_cpu=8.0)
                    )
                )
            )
        job = ap.queue.jobs[JOB].job
        assert (status, "", 1) == (job.status, job.claim, job.attempt.number)
        assert (3, completions) == (ap.queue.ad(JOB)["ExitCode"], ap.queue.ad(JOB)["NumJobCompletions"])


@pytest.mark.parametrize(("released", "status"), [(False, "held"), (True, "idle")])
async def test_an_exit_counts_that_a_hold_was_too_late_for(released: bool, status: str) -> None:
    """
    The program had exited when the job was held: it is retried as if nobody had held it, and the hold stays.
    """
    async with schedd() as ap:
        await ap.run({"OnExitRemove": Expr("ExitCode == 0"), "PeriodicHold": Expr("JobStatus == 2 && ExitCode is undefined"),
                      "Requirements": False})  # fmt: skip
        await ap.policies.evaluate_all()
        assert "held" == ap.queue.jobs[JOB].job.status
        if released:
            await ap.recorder.record([("job/1.0", JobReleased(reason="go on"))])
        await ap.told(Ended(result=AttemptResult(exit=ExitRecord(code=1, at=time.time()))))
        job = ap.queue.jobs[JOB].job
        assert (status, "", 1) == (job.status, job.claim, ap.queue.ad(JOB)["NumJobCompletions"])


async def test_an_exit_hold_holds_a_job_that_was_held_and_released() -> None:
    """The attempt that ends is the one of before."""
    async with schedd() as ap:
        await ap.run({"OnExitHold": Expr("ExitCode == 3"), "OnExitHoldSubCode": 7})
        await ap.recorder.record([
            ("job/1.0", JobHeld(code=1, reason="wait")), ("job/1.0", JobReleased(reason="go on")),
        ])  # fmt: skip
        await ap.told(Ended(result=AttemptResult(exit=ExitRecord(code=3, at=time.time()))))
        ad = ap.queue.ad(JOB)
        assert ("held", 3, 7) == (
            ap.queue.jobs[JOB].job.status,
            ad["HoldReasonCode"],
            ad["HoldReasonSubCode"],
        )
        assert (3, 7) == (ad["VacateReasonCode"], ad["VacateReasonSubCode"])
        assert Expr("[ JobPolicy = 1 ]") == ad["NumVacatesByReason"]


async def test_a_program_exits_when_it_does_and_not_when_we_hear_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A report that was long on its way makes no job too long."""
    for at, status in ((2.0, "gone"), (9.0, "held")):
        async with schedd() as ap:
            with monkeypatch.context() as earlier:
                begun = time.time() - 10.0
                earlier.setattr(time, "time_ns", lambda begun=begun: int(begun * 1e9))
                await ap.run({"AllowedJobDuration": 5})
            await ap.told(Ended(result=AttemptResult(exit=ExitRecord(code=0, at=begun + at))))
            assert status == (ap.queue.jobs[JOB].job.status if JOB in ap.queue.jobs else "gone")


async def test_an_order_to_vacate_is_for_one_attempt() -> None:
    """If it comes too late for its attempt, it does not keep the next one from being vacated."""
    async with schedd() as ap:
        await ap.run({"PeriodicVacate": True, "Requirements": False})
        await ap.submit({"PeriodicHold": True})  # this has to be committed first
        slow = asyncio.create_task(ap.policies.evaluate_all())
        await asyncio.sleep(0)
        await ap.told(Ended(result=AttemptResult(ending=Ending(code=1010, reason="the owner came back"))))
        await slow
        assert "idle" == ap.queue.jobs[JOB].job.status
        await ap.start(2)
        await ap.policies.evaluate_all()
        assert [(1000, 2)] == [(stop.ending.code, stop.attempt) for stop in await ap.stops()]


async def test_a_policy_vacates_with_its_subcode() -> None:
    """It is recorded with what it was ordered with."""
    async with schedd() as ap:
        await ap.run({"PeriodicVacate": True, "PeriodicVacateSubCode": 42, "Requirements": False})
        await ap.policies.evaluate_all()
        (stop,) = await ap.stops()
        await ap.told(Ended(result=AttemptResult(ending=stop.ending)))
        ad = ap.queue.ad(JOB)
        assert (1000, 42) == (ad["VacateReasonCode"], ad["VacateReasonSubCode"])


@pytest.mark.parametrize("subcode", [1e30, 2**63 - 1, float("inf"), "x"])
async def test_no_subcode_stops_the_schedd(subcode: float | str) -> None:
    """What cannot be recorded is none."""
    async with schedd() as ap:
        await ap.run({"PeriodicHold": True, "PeriodicHoldSubCode": subcode})
        await ap.policies.evaluate_all()
        assert ("held", 0) == (ap.queue.jobs[JOB].job.status, ap.queue.ad(JOB)["HoldReasonSubCode"])


async def test_nobody_manages_a_job_in_its_submitters_stead() -> None:
    """To say so exempts from no rule of the site."""
    rule = (SystemRule(expression="true"),)
    async with schedd(ScheddSettings(name="ap", system_periodic_remove=rule)) as ap:
        await ap.submit({"Managed": "External"})
        await ap.policies.evaluate_all()
        assert JOB not in ap.queue.jobs


async def test_an_end_that_nobody_knows_holds_the_job() -> None:
    """It is no success."""
    async with schedd() as ap:
        await ap.run({})
        await ap.told(Ended(result=AttemptResult()))
        assert ("held", 5) == (ap.queue.jobs[JOB].job.status, ap.queue.ad(JOB)["HoldReasonCode"])


async def test_looks_go_on_by_themselves() -> None:
    """
    The first comes after an interval: by then the shadows have told what ended while no schedd was there.
    """
    async with schedd(ScheddSettings(name="ap", periodic_expr_interval=0.01)) as ap:
        await ap.submit({"PeriodicHold": Expr("NumHolds == 0"), "PeriodicRelease": True})
        looking = asyncio.create_task(ap.policies.evaluate_forever())
        await eventually(lambda: _held_and_released(ap))
        looking.cancel()


async def _held_and_released(ap: Schedd) -> bool:
    return ("idle", 1) == (ap.queue.jobs[JOB].job.status, ap.queue.ad(JOB)["NumHolds"])


async def test_a_removed_job_that_exits_leaves() -> None:
    """No policy keeps it."""
    async with schedd() as ap:
        await ap.run({"OnExitRemove": False, "PeriodicRemove": Expr("JobStatus == 2"), "OnExitHold": True})
        await ap.policies.evaluate_all()
        assert ap.queue.jobs[JOB].job.status == "removed"
        await ap.told(Ended(result=AttemptResult(exit=ExitRecord(code=3))))
        assert JOB not in ap.queue.jobs


async def test_nobody_waits_long_for_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of many jobs that all have a policy, some are looked at before somebody else has a turn, and in the end all were.
    """
    monkeypatch.setattr(
        "kettle_services.schedd.queue.time_slice.SLICE_S", 0.0
    )  # the shortest turns there can be
    async with schedd() as ap:
        await ap.submit({"PeriodicHold": Expr('Args == "1999"')}, count=2000)
        turns, over = 0, asyncio.Event()

        async def others() -> None:
            nonlocal turns
            while not over.is_set():
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(others())
        await ap.policies.evaluate_all()
        over.set()
        await counting
        assert ["held"] == [e.job.status for e in ap.queue.jobs.values() if e.job.status != "idle"]
        assert turns > 1000


async def test_jobs_without_a_policy_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ad is made for them, unless the site has a rule for all."""
    rule = (SystemRule(expression='Args == "1"'),)
    for settings, held in (
        (ScheddSettings(name="ap"), 0),
        (ScheddSettings(name="ap", system_periodic_hold=rule), 1),
    ):
        async with schedd(settings) as ap:
            await ap.submit({"PeriodicHold": False, "OnExitRemove": True}, count=2)
            with monkeypatch.context() as patched:
                if not held:
                    patched.setattr("kettle_services.schedd.jobs.policies.QueuedJobAds", None)
                await ap.policies.evaluate_all()
            assert held == ap.queue.tally.by_submitter["eve"].get("held", 0)


async def test_looks_take_a_small_share_of_the_time() -> None:
    """What takes long is done less often, but at least once in the longest interval."""
    async with schedd() as ap:
        assert [60.0, 60.0, 500.0, 1200.0] == [ap.policies.pause(spent) for spent in (0.0, 0.6, 5.0, 50.0)]


def test_a_rule_that_cannot_be_read_stops_the_service(tmp_path: Path) -> None:
    """With the file, the setting, and what is wrong."""
    path = tmp_path / "kettle.toml"
    path.write_text('[[schedd.system_periodic_remove]]\nexpression = "NumHolds >"\n')
    with pytest.raises(SettingsError) as refusal:
        ScheddSettings.load("schedd", environ={}, toml_path=path)
    assert f"{path}:1: [schedd] system_periodic_remove: the expression 'NumHolds >' cannot be read" in str(
        refusal.value
    )


def test_rules_are_tables_in_a_file_and_lists_in_a_variable(tmp_path: Path) -> None:
    """Both ways say the same."""
    path = tmp_path / "kettle.toml"
    path.write_text(
        '[[schedd.system_periodic_hold]]\nname = "big"\nexpression = "RequestMemory > 1000"\nsubcode = "7"\n'
        '[[schedd.system_periodic_hold]]\nexpression = "NumHolds > 9"\n'
    )
    from_file = ScheddSettings.load("schedd", environ={}, toml_path=path)
    text = msgspec.json.encode(from_file.system_periodic_hold).decode()
    from_variable = ScheddSettings.load(
        "schedd", environ={"KETTLE_SCHEDD_SYSTEM_PERIODIC_HOLD": text, "HOME": "/"}
    )
    assert ["big", ""] == [rule.name for rule in from_file.system_policy.rules("Hold")]
    assert from_file.system_policy == from_variable.system_policy
