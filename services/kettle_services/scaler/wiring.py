"""How the parts of a scaler hang together."""

from kettle import VERSION
from kettle.accounts.lookup import own_name
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.log import Log
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.scaler.asked_plans import AskedPlans
from kettle_services.scaler.commands.leases import LeaseCommands
from kettle_services.scaler.commands.renewals import Renewals
from kettle_services.scaler.commands.worker_pools import PoolCommands
from kettle_services.scaler.domain.state import ScalerState
from kettle_services.scaler.lease_views import LeaseLog
from kettle_services.scaler.offline_ads import OfflineAds
from kettle_services.scaler.plan_views import PlanLog
from kettle_services.scaler.planner import Planner
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.reconciling import Reconciling
from kettle_services.scaler.record import SHARD, Record
from kettle_services.scaler.rooster import Rooster
from kettle_services.scaler.scaler_metrics import measure_pools
from kettle_services.scaler.settings import ScalerSettings
from kettle_services.scaler.watching import Watching
from kettle_wire.commands.scaler import RENEW
from kettle_wire.subjects import Subjects


async def serve(rt: Runtime, settings: ScalerSettings) -> None:
    """Own the shard, follow the ads, plan, have it carried out, until the process is asked to stop."""
    watch_budgets(rt.telemetry)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=People())
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    record = await Record.recall(
        log, PgWorkingSet(log.database), shard, ScalerState(), interval=settings.checkpoint_interval
    )
    fault_point("takeover.restored")
    rt.loop(record.checkpoint(), name="checkpoint")
    provisioning = Provisioning(bus, record, settings, rt.telemetry)
    reconciling = Reconciling(bus, provisioning, settings)
    rt.loop(provisioning.run(), name="provisioning")
    rt.loop(reconciling.run(), name="reconciling")
    rt.loop(reconciling.listen(), name="listening")
    subjects = Subjects(settings.pool)
    watching = Watching(bus, subjects)
    rooster = Rooster(bus, record, watching, provisioning.seen, settings, provisioning.book.timers)
    rt.loop(rooster.run(), name="rooster")
    rt.loop(OfflineAds(bus, subjects, rooster).keep(), name="offline ads")
    planner = Planner(bus, record, provisioning, watching, rooster, settings, rt.telemetry)
    await _plan(rt, log, watching, planner)
    measure_pools(rt.telemetry, record, provisioning, planner, rooster)
    pipeline = CommandPipeline(record, administrators=lambda: {*settings.administrators, own_name()})
    renewals = Renewals(provisioning, settings)
    asked = AskedPlans(planner.plan_now)
    pools = PoolCommands(record, provisioning, planner, rooster, asked, PlanLog(log))
    lease_log = LeaseLog(log)
    record.on_commit(lease_log.committed)
    leases = LeaseCommands(record, lease_log, pools, provisioning, bus, settings)
    served = [pipeline.command(RENEW, renewals.renew), *pools.served(pipeline), *leases.served(pipeline)]
    await bus.serve("scaler", settings.name, served, version=VERSION)
    rt.ready()
    await rt.stopping.wait()


async def _plan(rt: Runtime, log: Log, watching: Watching, planner: Planner) -> None:
    """Follow the ads and plan."""
    await planner.recall(log)
    rt.loop(watching.watch_owners(), name="owners of machines")
    rt.loop(watching.watch_slots(), name="slots")
    rt.loop(watching.watch_submitters(), name="submitters")
    rt.loop(planner.watch_rooms(), name="rooms")
    rt.loop(planner.run(), name="plan")
