"""How the parts of a negotiator hang together."""

from kettle import VERSION
from kettle.accounts.lookup import own_name
from kettle.bus.ports import BucketSpec, Served
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.negotiator.accountant import Accounts, recall
from kettle_services.negotiator.domain.accountant import Accountant
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.match_analysis import Answering
from kettle_services.negotiator.record import Record
from kettle_services.negotiator.service import Negotiator
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_wire.commands.negotiator import WHY
from kettle_wire.subjects import Subjects


def administrators(settings: NegotiatorSettings) -> frozenset[str]:
    """
    Users who may command the accountant: the account that could stop this process anyway, and the configured ones.
    """
    return frozenset({*settings.administrators, own_name()})


def accountant_of(settings: NegotiatorSettings) -> Accountant:
    """An accountant by the settings, who knows nobody yet."""
    tree = settings.group_policy.tree
    return Accountant(factors=settings.factors, half_life=settings.priority_halflife, tree=tree)


async def serve(rt: Runtime, settings: NegotiatorSettings) -> None:
    """Own the shard, follow the ads, negotiate, until the process is asked to stop."""
    watch_budgets(rt.telemetry)
    subjects = Subjects(settings.pool)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own_shard(rt, settings, bus, log, "negotiator")
    if shard is None:
        return
    record = Record(shard)
    await record.recall(log, settings.remembered)
    checkpointer, principals = await recall(log, PgWorkingSet(log.database), shard)
    accountant = accountant_of(settings)
    accountant.restore(principals)
    fault_point("takeover.restored")
    pool = Pool()
    accounts = Accounts(
        shard,
        checkpointer,
        accountant,
        pool,
        administrators=administrators(settings),
        limits=settings.limit_rules,
    )
    negotiator = Negotiator(bus, subjects, record, settings, rt.telemetry, pool=pool, accounts=accounts)
    await bus.ensure_bucket(BucketSpec(name=subjects.machine_owners, memory=False))
    rt.loop(checkpointer.run(), name="checkpoint")
    rt.loop(negotiator.watch_owners(), name="owners of machines")
    rt.loop(negotiator.watch_slots(), name="slots")
    rt.loop(negotiator.watch_secrets(), name="secrets")
    rt.loop(negotiator.watch_submitters(), name="submitters")
    rt.loop(negotiator.run(), name="negotiate")
    rt.loop(accounts.charging(negotiator.listed, settings.charge_interval), name="charge")
    rt.loop(negotiator.advertise(), name="advertise")
    await bus.serve(
        "negotiator",
        settings.name,
        [Served(WHY, Answering(record, pool).why), *accounts.served()],
        version=VERSION,
    )
    rt.ready()
    await rt.stopping.wait()
