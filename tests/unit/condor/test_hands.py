"""The hands of a workflow: whose jobs they touch."""

from typing import Any, cast

import msgspec
from tests.unit.dag.files.story import PLAN

from kettle.client import Client
from kettle.client.connections.pool_file import PoolFile
from kettle.dag.files.dag_files import DagFiles
from kettle.dag.files.progress import Progress
from kettle_services.condor.dagman.node_source import NodeSource
from kettle_services.condor.dagman.process import Hands
from kettle_wire.commands.dagman import RecordedWorkflowEvent, StartWorkflow, WorkflowNews
from kettle_wire.commands.queue import Select
from kettle_wire.events import encode
from kettle_wire.events.workflow import JobsRemovalOrdered, WorkflowEnded
from kettle_wire.workflows import WorkflowOptions


class Pool:
    """Ada's connection to a pool in which her workflow is over: notes which jobs are asked for."""

    pool = PoolFile(nats_url="", user="ada")

    def __init__(self) -> None:
        self.looked_at: list[Select] = []
        self.removed: list[tuple[list[int], str]] = []
        self.before: list[WorkflowNews] = []
        """What is told before it is over."""

    @property
    def workflows(self) -> "Pool":
        return self

    @property
    def spools(self) -> "Pool":
        return self

    async def start(self, _start: object) -> None: ...

    async def news(self, _workflow: int, _after: int) -> WorkflowNews:
        if self.before:
            return self.before.pop(0)
        ended = encode(WorkflowEnded(status=0, exit_code=5))
        return WorkflowNews(events=[RecordedWorkflowEvent(1, msgspec.Raw(ended))], complete=True)

    async def jobs(self, select: Select, *, projection: object) -> list[object]:
        del projection
        self.looked_at.append(select)
        return []

    async def fetch(self, select: Select) -> None:
        self.looked_at.append(select)

    async def remove(self, select: Select, reason: str) -> None:
        self.removed.append((select.clusters, reason))

    async def edit_jobs(self, _select: Select, _attributes: object) -> None: ...


class Source:
    """A DAG that was sent, of which nothing waits."""

    workflow, batch, spools, sent = 7, "w", True, True

    def jobs(self, *_: object) -> dict[Any, Any]:
        return {}


class Files:
    """Files of it that nobody writes."""

    progress = Progress(PLAN)

    def record(self, _events: object) -> None: ...

    def refresh(self, _now: float) -> None: ...

    def close(self, _now: float) -> None: ...


async def test_only_the_jobs_of_its_owner_belong_to_a_workflow() -> None:
    """
    Anybody may say of a job that a workflow has submitted it: such a job gets no files of the owner, and leaves none with the owner.
    """
    pool = Pool()
    assert 5 == await run_hands(pool)
    assert [["ada"], ["ada"]] == [select.owners for select in pool.looked_at]
    assert all("DAGManJobId =?= 7" in select.constraint for select in pool.looked_at)


async def test_what_is_removed_is_so_once_and_with_its_reason() -> None:
    """Not before that is recorded, and again by a process that comes later, as far as it is still there."""
    pool = Pool()
    order = encode(JobsRemovalOrdered(clusters=[4, 6], reason="the workflow is aborted"))
    other = encode(JobsRemovalOrdered(clusters=[5], reason="the script cannot be run"))
    said = [RecordedWorkflowEvent(1, msgspec.Raw(each)) for each in (order, other)]
    pool.before = [
        WorkflowNews(events=said[:1], complete=True, removals=[4, 5]),
        WorkflowNews(events=said[1:], complete=True, removals=[4, 5]),
    ]
    assert 5 == await run_hands(pool)
    by = "removed by the workflow of DAG job 7"
    assert [([4], f"{by}: the workflow is aborted"), ([5], f"{by}: the script cannot be run")] == pool.removed


async def run_hands(pool: Pool) -> int:
    """The exit code of the process of a workflow that is over."""
    start = StartWorkflow(
        workflow=7, files=["w.dag"], directory="/", digest="", plan=b"", options=WorkflowOptions()
    )
    hands = Hands(
        cast("Client", pool),
        cast("NodeSource", Source()),
        start,
        cast("DagFiles", Files()),
        attempts=1,
    )
    return await hands.run()
