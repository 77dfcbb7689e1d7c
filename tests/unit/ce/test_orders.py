"""What a batch system is told of jobs that are to stop, when what is known of them is not what they are."""

from typing import Any

import msgspec
import pytest

from kettle_services.ce.attempts import orders as giving
from kettle_services.ce.attempts.orders import Orders
from kettle_services.ce.batch.port import Job, NotTakenError
from kettle_services.ce.domain.attempts.attempt import Run, Stage
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchRequest, BatchState
from kettle_wire.codes import HoldCode
from kettle_wire.jobs import JobId

WAITS = Run(
    job=JobId(7, 0), attempt=1, owner="ada", intent="k1", request=BatchRequest(), stage=Stage.SUBMITTED,
    since=0.0, id="77", state=BatchState.QUEUED, held=True, orders=1,
)  # fmt: skip


class System:
    """Notes what it is told; a job that runs is no job to be held."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.told: list[str] = []
        self.refuses = refuses

    async def cancel(self, job: Job) -> bool:
        self.told.append(f"cancel {job.id}")
        return job.id != "76"

    async def hold(self, job: Job, *, running: bool) -> None:
        self.told.append("suspend" if running else "hold")
        if self.refuses:
            raise NotTakenError(f"job {job.id} is not pending", passes=False)


@pytest.mark.parametrize("refuses", [False, True])
async def test_a_job_that_had_begun_when_it_was_held_is_suspended_at_once(
    monkeypatch: pytest.MonkeyPatch, *, refuses: bool
) -> None:
    """And not a minute later, when the same order could be given again, or by the next process."""
    clock = [1_000.0]
    monkeypatch.setattr(giving, "now", lambda: clock[0])
    system = System(refuses=refuses)
    told: Any = system
    orders = Orders(told, "slurm")

    async def steered(run: Run) -> None:
        if order := orders.due("claim", run):
            await orders.give("claim", order, run)

    await steered(WAITS)
    clock[0] += 1.0
    await steered(WAITS)
    running = msgspec.structs.replace(WAITS, state=BatchState.RUNNING)
    await steered(running)
    await steered(running)
    assert ["hold", "suspend"] == system.told
    clock[0] += 60.0
    await steered(running)
    assert ["hold", "suspend", "suspend"] == system.told
    assert "" == orders.due("claim", msgspec.structs.replace(running, state=BatchState.SUSPENDED))


async def test_a_job_that_is_followed_by_another_number_is_removed_by_that_one() -> None:
    """What was told of the number before is told again, at once."""
    system = System()
    told: Any = system
    orders = Orders(told, "slurm")
    ending = Ending(code=HoldCode.UserRequest, reason="somebody said so")
    removed = msgspec.structs.replace(WAITS, stop=ending)
    other = msgspec.structs.replace(removed, id="76")
    for run in (removed, removed, other):
        if order := orders.due("claim", run):
            await orders.give("claim", order, run)
        assert (run is other) == orders.is_gone("claim", run)
    assert ["cancel 77", "cancel 76"] == system.told
