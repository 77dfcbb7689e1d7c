"""A dagman in memory whose schedd has one DAG job, number 7."""

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Served
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.replay import ROLE, served_frames
from kettle.eventsourcing.shard import Shard
from kettle_services.dagman.commands import WorkflowCommands
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.following import Following
from kettle_services.dagman.record import Record
from kettle_services.dagman.settings import NODES_OF_ONE
from kettle_wire.ads import Ad
from kettle_wire.codes import JobStatus, Universe
from kettle_wire.commands.dagman import StartWorkflow
from kettle_wire.commands.queue import QUERY_JOBS, JobAds, QueryJobs
from kettle_wire.identity import Identity, daemon, user
from kettle_wire.subjects import Subjects
from kettle_wire.workflows import WorkflowOptions

SUBJECTS = Subjects("pool")


class Service:
    """The parts of it that tests speak to."""

    def __init__(self, record: Record, bus: MemoryBus, most_nodes: int) -> None:
        self.record = record
        self.following = Following(bus, SUBJECTS, "ap", record)
        self.commands = WorkflowCommands(
            bus, "ap", record, self.following, lambda _caller: False, most_nodes=most_nodes
        )

    async def start(self, plan: bytes) -> Workflow:
        """Have ann begin the workflow, which is given back."""
        request = StartWorkflow(
            workflow=7, files=[], directory="/", digest="", plan=plan, options=WorkflowOptions()
        )
        await self.commands.start(request, user("ann"))
        return self.record.workflows[7]


async def dagman(dag_job: Ad, begun: Workflow | None = None, *, most_nodes: int = NODES_OF_ONE) -> Service:
    """
    With what its schedd says of the DAG job; `begun`: a workflow, as the log has it; `most_nodes`: of all workflows of an owner.
    """

    async def query(_request: QueryJobs, _caller: Identity) -> JobAds:
        return JobAds(jobs=[dag_job], total=1)

    log, server = MemoryLog(), MemoryServer()
    await log.take("schedd.ap", owner="schedd")
    schedd = MemoryBus(server, subjects=SUBJECTS, identity=daemon("schedd"))
    await schedd.serve("schedd", "ap", [Served(QUERY_JOBS, query)], version="1")
    await schedd.serve(ROLE, "schedd.ap", [served_frames(log, "schedd.ap")], version="1")
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    if begun is not None:
        record.begin(begun)
    return Service(record, MemoryBus(server, subjects=SUBJECTS, identity=daemon("dagman")), most_nodes)


def dag_job(status: JobStatus, *, runs: bool) -> Ad:
    """Its ad, as the schedd has it."""
    return {
        "ClusterId": 7,
        "Owner": "ann",
        "JobUniverse": int(Universe.SCHEDULER),
        "JobStatus": int(status),
        "CurrentHosts": int(runs),
        "RemoveReason": "no longer wanted",
    }
