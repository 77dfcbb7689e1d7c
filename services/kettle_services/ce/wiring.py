"""How the parts of a compute entrypoint hang together."""

from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.ce.domain.state import CeState
from kettle_services.ce.record import Record, shard_of
from kettle_services.ce.route_file import RouteFile
from kettle_services.ce.routing import Router
from kettle_services.ce.settings import CeSettings


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
    file = RouteFile(settings.routes, record)
    router = Router(bus, record, file, settings)
    file.on_change(router.forget)
    await file.recall()
    rt.loop(file.watch(settings.routes_interval), name="route file")
    rt.loop(router.run(), name="routing")
    rt.ready()
    await rt.stopping.wait()
