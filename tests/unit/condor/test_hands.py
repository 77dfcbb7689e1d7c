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
from kettle_wire.events.workflow import WorkflowEnded
from kettle_wire.workflows import WorkflowOptions


class Pool:
    """Ada's connection to a pool in which her workflow is over: notes which jobs are asked for."""

    pool = PoolFile(nats_url="", user="ada")

    def __init__(self) -> None:
        self.looked_at: list[Select] = []

    @property
    def workflows(self) -> "Pool":
        return self

    @property
    def spools(self) -> "Pool":
        return self

    async def start(self, _start: object) -> None: ...

    async def news(self, _workflow: int, _after: int) -> WorkflowNews:
        ended = encode(WorkflowEnded(status=0, exit_code=5))
        return WorkflowNews(events=[RecordedWorkflowEvent(1, msgspec.Raw(ended))], complete=True)

    async def jobs(self, select: Select, *, projection: object) -> list[object]:
        del projection
        self.looked_at.append(select)
        return []

    async def fetch(self, select: Select) -> None:
        self.looked_at.append(select)

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
    assert 5 == await hands.run()
    assert [["ada"], ["ada"]] == [select.owners for select in pool.looked_at]
    assert all("DAGManJobId =?= 7" in select.constraint for select in pool.looked_at)
