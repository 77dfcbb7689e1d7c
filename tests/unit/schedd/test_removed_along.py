"""Jobs that are removed with the job that says so."""

import pytest

from kettle_services.schedd.domain.jobs.commands import Assign
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.queue.removed_along import removed_along
from kettle_wire.ads import Ad, Expr
from kettle_wire.commands.schedd import Select
from kettle_wire.events import ClusterSubmitted
from kettle_wire.jobs import JobId

SAID = 'strcat("DAGManJobId =?= ", ClusterId)'


def queue_of(*clusters: tuple[str, Ad]) -> Queue:
    """Clusters 1, 2 ... with an owner each, of two jobs."""
    queue = Queue("ap")
    for number, (owner, ad) in enumerate(clusters, 1):
        submitted = ClusterSubmitted(
            cluster=number, owner=owner, ad={"Cmd": "/bin/true", **ad}, columns=[], rows=[[], []]
        )
        queue.apply(f"cluster/{number}", submitted, 1)
    return queue


NODES: tuple[tuple[str, Ad], ...] = (
    ("ann", {"DAGManJobId": 1}),
    ("ben", {"DAGManJobId": 1}),
    ("ann", {"DAGManJobId": 7}),
)


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (Select(clusters=[1]), [JobId(2, 0), JobId(2, 1)]),
        (Select(jobs=[JobId(1, 0), JobId(2, 1)]), [JobId(2, 0)]),
        (Select(clusters=[2]), []),
        (Select(owners=["ann"]), []),
        (Select(constraint="ClusterId == 1"), [JobId(2, 0), JobId(2, 1)]),
    ],
)
async def test_jobs_of_its_owner_that_meet_what_a_job_says_go_with_it(
    select: Select, expected: list[JobId]
) -> None:
    """Those that are selected themselves are not counted again."""
    queue = queue_of(("ann", {"OtherJobRemoveRequirements": Expr(SAID)}), *NODES)
    assert expected == await removed_along(queue, select)


async def test_a_job_that_runs_sees_to_the_others_itself() -> None:
    """A DAG job has still to run its FINAL node, when its nodes have ended."""
    queue = queue_of(("ann", {"OtherJobRemoveRequirements": Expr(SAID)}), *NODES)
    for proc in (0, 1):
        job = JobId(1, proc)
        for event in decide(queue.jobs[job].job, Assign("c", "slot1_1@m", "m")):
            queue.apply(job_stream(job), event, 2)
    assert [] == await removed_along(queue, Select(clusters=[1]))


@pytest.mark.parametrize("said", ["", "DAGManJobId =?=", 7, Expr("error"), Expr("DAGManJobId")])
async def test_what_cannot_be_read_is_true_of_nobody(said: str | int | Expr) -> None:
    """Nothing but the job itself goes."""
    queue = queue_of(("ann", {"OtherJobRemoveRequirements": said}), *NODES)
    assert [] == await removed_along(queue, Select(clusters=[1]))
