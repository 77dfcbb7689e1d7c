"""The witnesses can be believed: what they are to detect, they detect."""

import asyncio

from kettle.client import JobEvent
from kettle.testing.patience import PATIENCE_S
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import Event, JobAssigned, JobCompleted, JobVacated

from .evidence import FACTOR, Evidence, flaws


def recorded(*events: Event) -> list[JobEvent]:
    return [JobEvent("job/1.0", version, version, 0.0, event) for version, event in enumerate(events, 1)]


def assigned(attempt: int) -> JobAssigned:
    return JobAssigned(attempt=attempt, claim=f"c{attempt}", slot="s", startd="m")


def test_a_sound_life_has_no_flaw() -> None:
    """An attempt that was lost and one that completed, one after the other, is what may happen."""
    lost = JobVacated(attempt=1, ending=Ending(code=1, reason="lost"))
    assert [] == flaws(
        recorded(assigned(1), lost, assigned(2), JobCompleted(attempt=2, exit=ExitRecord(code=0)))
    )


def test_overlapping_attempts_are_a_flaw() -> None:
    """A second attempt that begins while the first is not over is found."""
    assert ["attempt 2 began while 1 was not over"] == flaws(
        recorded(assigned(1), assigned(2), JobCompleted(attempt=2, exit=ExitRecord(code=0)))
    )


def test_completing_twice_or_never_is_a_flaw() -> None:
    """A job completes exactly once."""
    done = JobCompleted(attempt=1, exit=ExitRecord(code=0))
    assert "completed 0 times" in flaws(recorded(assigned(1)))
    assert "completed 2 times" in flaws(recorded(assigned(1), done, done))
    assert "JobAssigned after the end" in flaws(recorded(assigned(1), done, assigned(2)))


async def test_a_witness_sees_its_double(evidence: Evidence) -> None:
    """Two runs of one job at the same time are noted as an overlap; one after the other, they are not."""
    evidence.sweep([])

    async def run(name: str, seconds: str) -> None:
        process = await asyncio.create_subprocess_exec(
            "./witness.sh",
            str(evidence.directory),
            name,
            seconds,
            cwd=evidence.work,
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0

    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(run("3", "inf"))
        while not evidence.runs():
            await asyncio.sleep(0.01)
        await run("3", "0")
        evidence.let_go()
    await run("4", "0")
    await run("4", "0")
    assert {3: 1} == evidence.overlaps()
    assert {3: 2, 4: 2} == evidence.runs()
    assert (evidence.work / "result.4").read_text() == f"{4 * FACTOR}\n"


def test_a_missing_or_wrong_output_is_seen(evidence: Evidence) -> None:
    """Output that did not come back, or is not what the job should have made, is found."""
    (evidence.work / "result.0").write_text("0\n")
    (evidence.work / "out.0").write_text("this is 0\n")
    (evidence.work / "result.1").write_text("8\n")
    (evidence.work / "out.1").write_text("this is 1\n")
    assert [1, 2] == evidence.wrong_results(3)
