"""How the parts of a dagman hang together."""

from kettle import VERSION
from kettle.auth.mapping.levels import Level
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.authorizer import Authorizer
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.dagman.commands import WorkflowCommands
from kettle_services.dagman.following import Following
from kettle_services.dagman.record import Record
from kettle_services.dagman.settings import DagmanSettings
from kettle_wire.codes import NodeState
from kettle_wire.commands import dagman as commands
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry import queue_metrics as metrics


async def serve(rt: Runtime, settings: DagmanSettings) -> None:
    """Own the shard, go on with the workflows, answer, until the process is asked to stop."""
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=(people := People()))
    shard = await own_shard(rt, settings, bus, log, f"dagman.{settings.name}")
    if shard is None:
        return
    record = await Record.recall(
        log, PgWorkingSet(log.database), shard, interval=settings.checkpoint_interval
    )
    fault_point("takeover.restored")
    following = Following(bus, Subjects(settings.pool), settings.name, record)
    rt.loop(record.checkpoint(), name="checkpoint")
    rt.loop(following.follow(), name="follow")
    rt.loop(following.run_deferred(), name="deferred")
    authorizer = Authorizer.of_service("dagman", lambda: settings.authorization, people=people)

    def administers(caller: Identity) -> bool:
        return authorizer.decide(Level.ADMINISTRATOR, caller, None).allowed

    most = settings.max_nodes_per_owner
    asked = WorkflowCommands(bus, settings.name, record, following, administers, most_nodes=most)
    pipeline = CommandPipeline(record)
    await bus.serve(
        "dagman",
        settings.name,
        [
            pipeline.command(commands.START_WORKFLOW, asked.start),
            pipeline.query(commands.FOLLOW_WORKFLOW, asked.follow),
            pipeline.command(commands.REPORT_FAILURES, asked.failed),
            pipeline.command(commands.REMEMBER_NODES, asked.remember),
            pipeline.command(commands.CHANGE_WORKFLOW, asked.change),
            pipeline.query(commands.SHOW_WORKFLOW, asked.show),
            pipeline.query(commands.EXPLAIN_NODE, asked.explain),
        ],
        version=VERSION,
    )
    rt.telemetry.observe(metrics.NODES, lambda: _nodes(record))
    rt.ready()
    await rt.stopping.wait()


def _nodes(record: Record) -> dict[tuple[str, ...], float]:
    return {
        (state.name.lower(),): sum(each.counts[state] for each in record.workflows.values())
        for state in NodeState
    }
