"""What a queue records when a batch system has ended jobs that a route had brought there."""

from typing import Final

import pytest

from kettle_services.schedd.domain.submission import routes
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.commands.attempt_reports import REPORT, AttemptReport, Ended, ReportAttempts
from kettle_wire.commands.routing import Routing
from kettle_wire.events import ClaimGranted, Event, JobAssigned, JobEdited, JobStarted
from kettle_wire.jobs import JobId

from .test_policies import JOB, SHADOW, Schedd, schedd

WHY: Final = "job 12 of the batch system was removed there (CANCELLED)"
REMOVED: Final = AttemptResult(ending=Ending(code=VacateCode.RemovedInBatchSystem, reason=WHY))
RETRY: Final[Ad] = {"OnLocalRemove": "retry", "OnLocalRemoveRetries": 1}


async def run_there(ap: Schedd, jobs: list[JobId], attempt: int, more: Ad) -> None:
    """Give jobs a route, with what it says besides, and have them begin at a batch system."""
    changes: list[tuple[str, Event]] = []
    attributes: Ad = {"JobUniverse": 9, "GridResource": "batch slurm", **more}
    for job in jobs:
        ad, claim = ap.queue.ad(job), f"{job}#{attempt}"
        number = routes.said_before(ap.queue.jobs[job]) + 1
        routing = Routing(jobs=[], route="Slurm", attributes=attributes)
        granted = ClaimGranted(
            claim=claim,
            startd="ce.ap",
            slot="slurm@ce.ap",
            slot_ad={},
            submitter="eve",
            autocluster=0,
            lease=60.0,
        )
        changes += [
            (f"job/{job}", routes.route(ad, {name.lower(): name for name in ad}, routing, number)),
            (f"claim/{claim}", granted),
            (f"job/{job}", JobAssigned(attempt=attempt, claim=claim, slot="slurm@ce.ap", startd="ce.ap")),
            (f"job/{job}", JobStarted(attempt=attempt, pid=0, at=1.0)),
        ]
    await ap.recorder.record(changes)


async def submit(ap: Schedd, count: int) -> list[JobId]:
    """Jobs that wait for a route."""
    await ap.submit({"AwaitsRoute": True, "JobUniverse": 5, "Owner": "eve"}, count=count)
    return [JobId(1, proc) for proc in range(count)]


async def ended(ap: Schedd, jobs: list[JobId], attempt: int, result: AttemptResult = REMOVED) -> None:
    """Have the ends of their attempts told."""
    reports = [
        AttemptReport(job=job, attempt=attempt, claim=f"{job}#{attempt}", news=Ended(result=result))
        for job in jobs
    ]
    await ap.asked.ask(REPORT, ReportAttempts(shadow="s", reports=reports), SHADOW)


def counted(recorder: QueueRecorder) -> tuple[int, int, int, int]:
    tally = recorder.queue.routing.routes["Slurm"]
    return tally.jobs, tally.idle, tally.held, tally.failed


@pytest.mark.parametrize("more", [{"OnLocalRemove": "fail"}, {}, {"OnLocalRemove": "retry"}])
async def test_a_hundred_that_were_removed_there_are_removed(more: Ad) -> None:
    """
    All of them, and none is offered again; a repeat of the report changes nothing. No removal is a failure of the route.
    """
    async with schedd() as ap:
        jobs = await submit(ap, 101)
        gone, stays = jobs[:100], jobs[100]
        await run_there(ap, jobs, 1, more)
        for _ in range(2):
            await ended(ap, gone, 1)
        assert {stays} == set(ap.queue.jobs)
        assert (1, 0, 0, 0) == counted(ap.recorder)
        assert not ap.queue.demand.in_batch.get("eve")


async def test_a_hundred_that_were_removed_there_are_held() -> None:
    """With the site's reason; they are neither offered again nor in need of a route."""
    async with schedd() as ap:
        jobs = await submit(ap, 100)
        await run_there(ap, jobs, 1, {"OnLocalRemove": "hold"})
        for _ in range(2):
            await ended(ap, jobs, 1)
        assert {("held", "", 1)} == {
            (entry.job.status, entry.job.claim, entry.job.attempt.number) for entry in ap.queue.jobs.values()
        }
        assert {(HoldCode.GlobusGramError, WHY)} == {
            (ad["HoldReasonCode"], ad["HoldReason"]) for ad in map(ap.queue.ad, jobs)
        }
        assert (100, 0, 100, 0) == counted(ap.recorder)
        assert not ap.queue.demand.in_batch.get("eve")
        assert not ap.queue.routing.awaiting


async def test_what_was_removed_there_is_tried_as_often_as_its_route_says() -> None:
    """Each time it waits for a route again and says why; after the last time it fails."""
    async with schedd() as ap:
        (job,) = await submit(ap, 1)
        await run_there(ap, [job], 1, RETRY)
        for _ in range(2):
            await ended(ap, [job], 1)
        assert {job} == set(ap.queue.routing.awaiting)
        assert (0, 0, 0, 0) == counted(ap.recorder)
        ad = ap.queue.ad(job)
        assert ("idle", 5, 2, WHY) == (
            ap.queue.jobs[job].job.status,
            *(ad[name] for name in ("JobUniverse", "NumRouted", "UnroutedReason")),
        )
        assert not {"RouteName", "GridResource", "OnLocalRemove"} & ad.keys()
        await run_there(ap, [job], 2, RETRY)
        await ended(ap, [job], 2)
        assert {} == ap.queue.jobs
        assert (0, 0, 0, 0) == counted(ap.recorder)


async def test_other_ends_are_what_they_are() -> None:
    """
    A program that ran to its end is done whatever its route says of removals, and what its machine did there is no fate of
    the route's.
    """
    async with schedd() as ap:
        done, lost = await submit(ap, 2)
        await run_there(ap, [done, lost], 1, {"OnLocalRemove": "hold", "Requirements": False})
        await ended(ap, [done], 1, AttemptResult(exit=ExitRecord(code=3, at=2.0)))
        failed = Ending(code=VacateCode.StartdException, reason="its machine failed")
        await ended(ap, [lost], 1, AttemptResult(ending=failed))
        assert {lost} == set(ap.queue.jobs)
        assert "idle" == ap.queue.jobs[lost].job.status
        assert (1, 1, 0, 0) == counted(ap.recorder)


async def test_a_job_that_fails_by_the_test_of_its_route_is_a_failure_of_the_route() -> None:
    """And is done all the same."""
    async with schedd() as ap:
        jobs = await submit(ap, 2)
        await run_there(ap, jobs, 1, {"JobFailureTest": Expr("ExitCode != 0")})
        for job, code in zip(jobs, (0, 3), strict=True):
            await ended(ap, [job], 1, AttemptResult(exit=ExitRecord(code=code, at=2.0)))
        assert {} == ap.queue.jobs
        assert (0, 0, 0, 1) == counted(ap.recorder)
        assert "job 1.1: JobFailureTest is true" == ap.queue.routing.routes["Slurm"].failure


async def test_a_route_fails_by_its_own_word() -> None:
    """A submitter who calls the ends of the own jobs failures closes no route for others."""
    async with schedd() as ap:
        await ap.submit(
            {"AwaitsRoute": True, "JobUniverse": 5, "Owner": "eve", "JobFailureTest": Expr("true")}
        )
        await run_there(ap, [JOB], 1, {})
        await ended(ap, [JOB], 1, AttemptResult(exit=ExitRecord(code=0)))
        assert 0 == ap.queue.routing.routes["Slurm"].failed


async def test_a_periodic_expression_of_a_route_counts_and_is_false_while_it_is_undefined() -> None:
    """
    A job is not held because an attribute is missing; when there is one, the expression does what it says.
    """
    async with schedd() as ap:
        (job,) = await submit(ap, 1)
        await run_there(
            ap, [job], 1, {"PeriodicHold": Expr("RemoteCopies > 3"), "PeriodicRemove": Expr("Missing")}
        )
        await ap.policies.evaluate_all()
        assert "running" == ap.queue.jobs[JOB].job.status
        await ap.recorder.record([(f"job/{job}", JobEdited(attributes={"RemoteCopies": 4}))])
        await ap.policies.evaluate_all()
        assert "held" == ap.queue.jobs[JOB].job.status
