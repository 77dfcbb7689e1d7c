"""How the parts of a scaler hang together."""

from typing import Any

from kettle import VERSION
from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.scaler.commands.renewals import Renewals
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.reconciling import Reconciling
from kettle_services.scaler.record import SHARD, Record
from kettle_services.scaler.settings import ScalerSettings
from kettle_wire.commands.scaler import RENEW


async def serve(rt: Runtime, settings: ScalerSettings) -> None:
    """Own the shard, follow the ads, plan, have it carried out, until the process is asked to stop."""
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=People())
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    record = await Record.recall(
        log, PgWorkingSet(log.database), shard, interval=settings.checkpoint_interval
    )
    fault_point("takeover.restored")
    rt.loop(record.checkpoint(), name="checkpoint")
    provisioning = Provisioning(bus, record, settings)
    reconciling = Reconciling(bus, provisioning, settings)
    rt.loop(provisioning.run(), name="provisioning")
    rt.loop(reconciling.run(), name="reconciling")
    rt.loop(reconciling.listen(), name="listening")
    pipeline = CommandPipeline(record)
    renewals = Renewals(provisioning, settings)
    served = [pipeline.command(RENEW, renewals.renew), *_served(pipeline, record)]
    await bus.serve("scaler", settings.name, served, version=VERSION)
    rt.ready()
    await rt.stopping.wait()


def _served(pipeline: CommandPipeline, record: Record) -> list[Served[Any, Any]]:
    """All endpoints with their handlers: a module of `commands` for each part."""
    del pipeline, record
    return []
