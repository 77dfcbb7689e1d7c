"""Slots that change hands: by the machine's RANK, and by the word of those whose jobs run on them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import Client, job_id, select
from kettle.client.errors import CommandRefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobAssigned, JobStarted, JobVacated

from .waiting import happened

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "startd": {
        "rank": "TARGET.Liking ?: 0",
        "polling_interval": 0.2,
        "activity_delay": 0.05,
        "max_job_retirement_time": "TARGET.Precious =?= true ? 600 : 0",
    },
    "negotiator": {"allow_pslot_preemption": True},
}


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": SETTINGS}


async def submit(pool: ThrowawayPool, cwd: Path, more: str) -> str:
    """Submit a job that runs until it is removed; its id."""
    described = f"executable = /bin/sleep\ntransfer_executable = false\narguments = 600\n{more}queue\n"
    return f"{(await pool.client.submit(described, cwd=cwd)).cluster}.0"


async def gone(pool: ThrowawayPool, *jobs: str) -> None:
    """Remove jobs, and wait for their end."""
    chosen = select(*jobs)
    await pool.client.remove(chosen)
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(chosen)


async def idle(pool: ThrowawayPool) -> None:
    """
    Wait until the machine is whole again: a claim of two cores that is still there might be used for a job of one.
    """
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.ads("Machine", constraint="DynamicSlot"):
            await asyncio.sleep(0.05)


async def test_a_job_that_the_machine_likes_better_takes_the_slot(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    The machine is full: the better job gets the slot of the other, which is vacated with 1018 and runs again later.
    """
    plain = await submit(pool, tmp_path, "request_cpus = 2\n")
    await happened(pool.client, plain, JobStarted)

    better = await submit(pool, tmp_path, "request_cpus = 2\n+Liking = 5\n")
    evicted = await happened(pool.client, plain, JobVacated)
    assigned = await happened(pool.client, better, JobAssigned)

    assert 1018 == evicted.ending.code
    assert "RANK of the machine is 5 for another job, and 0 for this one" == evicted.ending.reason
    assert (await happened(pool.client, plain, JobAssigned)).slot == assigned.slot
    await gone(pool, better)
    await happened(pool.client, plain, JobStarted, times=2)
    await gone(pool, plain)


async def test_two_jobs_make_room_for_a_larger_one(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Two jobs of one core fill the machine: the better one of two cores has both, and they wait for their turn again.
    """
    await idle(pool)
    small = [await submit(pool, tmp_path, "request_cpus = 1\n") for _ in range(2)]
    for job in small:
        await happened(pool.client, job, JobStarted)

    better = await submit(pool, tmp_path, "request_cpus = 2\n+Liking = 5\n")
    await happened(pool.client, better, JobStarted)

    assert {1018} == {(await happened(pool.client, job, JobVacated)).ending.code for job in small}
    await gone(pool, better)
    await happened(pool.client, small[0], JobStarted, times=2)
    await gone(pool, *small)


async def test_a_job_has_its_retirement_time_and_goes_on_when_the_better_one_is_gone(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """Retiring -> Busy: nobody is evicted for a job that was removed while it waited."""
    precious = await submit(pool, tmp_path, "request_cpus = 2\n+Precious = true\n")
    await happened(pool.client, precious, JobStarted)
    better = await submit(pool, tmp_path, "request_cpus = 2\n+Liking = 5\n")

    retiring = await slot(pool.client, "Retiring")
    await gone(pool, better)
    busy = await slot(pool.client, "Busy")

    assert 5.0 == retiring["PreemptingRank"]
    assert "PreemptingRank" not in busy
    events = [type(each.event).__name__ async for each in _so_far(pool.client, precious)]
    assert "JobVacated" not in events
    await gone(pool, precious)


async def slot(client: Client, activity: str) -> dict[str, Any]:
    """The ad of a claimed slot, as soon as there is one with this activity."""
    async with asyncio.timeout(PATIENCE_S):
        while not (
            found := await client.ads("Machine", constraint=f'Activity == "{activity}" && DynamicSlot')
        ):
            await asyncio.sleep(0.05)
    return found[0]


async def _so_far(client: Client, job: str) -> AsyncIterator[Any]:
    for each in await client.events(job_id(job)):
        yield each


async def test_now_gives_a_job_what_others_of_its_owner_have(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Two jobs of one core make room for one of two: it runs before them although they came first, and they wait for their turn again.
    """
    await idle(pool)
    first = await submit(pool, tmp_path, "request_cpus = 1\n")
    second = await submit(pool, tmp_path, "request_cpus = 1\n")
    for job in (first, second):
        await happened(pool.client, job, JobStarted)
    urgent = await submit(pool, tmp_path, "request_cpus = 2\n")

    status, said, _ = await pool.kettle("now", urgent, "--instead-of", first, second)
    await happened(pool.client, urgent, JobStarted)

    assert 0 == status
    assert f"Job {urgent} runs as soon as {first}, {second} are gone.\n" == said
    codes = {(await happened(pool.client, job, JobVacated)).ending.code for job in (first, second)}
    assert {1015} == codes
    await gone(pool, urgent)
    await happened(pool.client, first, JobStarted, times=2)
    await gone(pool, first, second)


async def test_now_changes_nothing_if_it_cannot_be(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A job too large for what the others have, a victim that does not run, a job that is not idle: told why, and all go on.
    """
    await idle(pool)
    runs = await submit(pool, tmp_path, "request_cpus = 1\n")
    await happened(pool.client, runs, JobStarted)
    large = await submit(pool, tmp_path, "request_cpus = 2\n")

    async def refusal(job: str, *victims: str) -> str:
        with pytest.raises(CommandRefusedError) as refused:
            await pool.client.run_now(job_id(job), [job_id(each) for each in victims])
        return str(refused.value)

    assert "requests more than the claim has; nothing was changed" in await refusal(large, runs)
    assert f"job {large} is idle, not running" in await refusal(large, large)
    assert f"job {runs} is running, not idle" in await refusal(runs, runs)
    assert "is not in the queue" in await refusal(large, "99999.0")
    await gone(pool, runs, large)
