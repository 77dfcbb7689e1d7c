"""How the parts of a compute entrypoint hang together."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kettle import VERSION
from kettle.accounts.lookup import own_name
from kettle.bus.ports import Bus
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.ce.attempts.follower import Follower
from kettle_services.ce.attempts.wiring import following
from kettle_services.ce.batch.settings import FilesSettings
from kettle_services.ce.commands import CeCommands
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.forgetting import forget_departed
from kettle_services.ce.payloads import PayloadAudit
from kettle_services.ce.record import Record, shard_of
from kettle_services.ce.route_file import RouteFile
from kettle_services.ce.routing import Router
from kettle_services.ce.settings import CeSettings
from kettle_wire.commands import ce as commands
from kettle_wire.commands.payloads import LIST_PAYLOADS, REPORT_PAYLOADS

if TYPE_CHECKING:
    from kettle_services.ce.attempts.node_files import NodeFiles


async def serve(rt: Runtime, settings: CeSettings) -> None:
    """Own the shard, route jobs, answer, until the process is asked to stop."""
    watch_budgets(rt.telemetry)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=People())
    shard = await own_shard(rt, settings, bus, log, shard_of(settings.name))
    if shard is None:
        return
    record = await Record.recall(
        log, PgWorkingSet(log.database), shard, CeState(), interval=settings.checkpoint_interval
    )
    fault_point("takeover.restored")
    rt.loop(record.checkpoint(), name="checkpoint")
    file = RouteFile(settings.routes, record, {each.name: each.kind.value for each in settings.batch})
    router = Router(bus, record, file, settings)
    file.on_change(router.forget)
    await file.recall()
    rt.loop(file.watch(settings.routes_interval), name="route file")
    rt.loop(router.run(), name="routing")
    rt.loop(forget_departed(bus, record, settings.name), name="forgetting")

    def administrators() -> set[str]:
        return {*settings.administrators, own_name()}

    pipeline = CommandPipeline(record, administrators=administrators)
    asked = CeCommands(log, record, file, router, administrators)
    audit = PayloadAudit(bus, log, record, settings.name, administrators)
    rt.loop(audit.watch(), name="payloads")
    await bus.serve(
        "ce",
        settings.name,
        [
            pipeline.query(commands.SHOW_ROUTES, asked.show_routes),
            pipeline.query(commands.SHOW_DECISION, asked.show_decision),
            pipeline.query(commands.TRY_ROUTE, asked.try_route),
            pipeline.command(commands.LOAD_ROUTES, asked.load_routes),
            pipeline.command(commands.DRAIN, asked.drain),
            pipeline.command(commands.RESUME, asked.resume),
            pipeline.command(REPORT_PAYLOADS, audit.report),
            pipeline.query(LIST_PAYLOADS, audit.listed),
        ],
        version=VERSION,
    )
    async with AsyncExitStack() as stack:
        if settings.batch:
            home = settings.home_path / shard_of(settings.name)
            files = _node_files(settings.files, home) if settings.files is not None else None
            await stack.enter_async_context(_batch_jobs(bus, record, settings, home, files, audit))
            if files is not None:
                await stack.enter_async_context(files.running(rt))
        rt.ready()
        await rt.stopping.wait()


def _node_files(settings: FilesSettings, home: Path) -> "NodeFiles":
    from kettle_services.ce.attempts.node_files import NodeFiles  # a web server: only who needs it has it

    return NodeFiles(settings, home)


def _batch_jobs(
    bus: Bus,
    record: Record,
    settings: CeSettings,
    home: Path,
    files: "NodeFiles | None",
    audit: PayloadAudit,
) -> AbstractAsyncContextManager[dict[str, Follower]]:
    return following(
        bus,
        settings.batch,
        record.state.claims.states,
        record.record,
        pool=settings.pool,
        schedd=settings.name,
        home=home,
        node_files=files,
        payloads=audit.take,
    )
