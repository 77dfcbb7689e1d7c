"""How the parts of a collector hang together."""

import time

from kettle import VERSION
from kettle.bus.ports import BucketSpec, Served
from kettle.classad import ClassAdParseError, Node, parse
from kettle.faults import fault_point
from kettle.runtime import Runtime, SettingsError, Telemetry
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.collector.absent_ads import Absentees, ExpectedSlots, slot_key
from kettle_services.collector.domain.ads import silent_key
from kettle_services.collector.domain.machine_presence import Machines
from kettle_services.collector.forwarding import Forwarding
from kettle_services.collector.machine_recorder import Registrar
from kettle_services.collector.readers import Readers
from kettle_services.collector.record import SHARD, Record, recall
from kettle_services.collector.service import Collector
from kettle_services.collector.settings import CollectorSettings
from kettle_wire.commands.collector import QUERY_ADS
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry import pool_metrics as metrics


async def serve(rt: Runtime, settings: CollectorSettings) -> None:
    """
    Make the buckets, follow the ads and answer; own the shard, if it is this one's turn, and write down who comes and
    goes; until the process is asked to stop.
    """
    watch_budgets(rt.telemetry)
    subjects = Subjects(settings.pool)
    requirements = _requirements(settings.absent_requirements)
    bus = await join_bus(rt, settings)
    for bucket in (subjects.ads, subjects.private_ads):
        await bus.ensure_bucket(BucketSpec(name=bucket, ttl=settings.classad_lifetime))
    collector = Collector(bus, subjects, settings)
    rt.loop(collector.watch(), name="watch")
    rt.loop(collector.expire_silent(), name="housekeeping")
    rt.readiness("ads", collector.complete.is_set)
    await bus.serve(
        "collector", settings.name, [Served(QUERY_ADS, collector.query_ads)], version=VERSION, shared=True
    )
    readers = Readers(bus, subjects, time.monotonic)
    await bus.answer(subjects.readers(">"), readers.answer)
    await bus.answer(subjects.stream_requests("*"), readers.make_stream)
    log = await join_log(rt, settings)
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    checkpointer, recalled = await recall(log, PgWorkingSet(log.database), shard)
    fault_point("takeover.restored")
    lifetime = settings.classad_lifetime
    expected = ExpectedSlots(requirements)
    slots = {
        machine: {slot_key(ad): ad for ad in ads}
        for machine, ads in recalled.absent.items()
        if any(ad in expected for ad in ads)
    }
    absent = Absentees(bus, subjects, slots, shard.committed, expire=settings.absent_expire)
    daemons = {key: {silent_key(key): ad} for key, ad in recalled.silent.items()}
    registered = Absentees(bus, subjects, daemons, shard.committed, expire=settings.registered_expire)
    machines = Machines(recalled.joined, deadline=time.time() + lifetime)
    registrar = Registrar(
        Record(shard, checkpointer), machines, absent, registered, expected, lifetime=lifetime
    )
    collector.register(registrar)
    for name, each in (("absent machines", absent), ("silent daemons", registered)):
        rt.loop(each.keep(every=min(settings.ad_interval, lifetime / 3)), name=name)
    rt.loop(checkpointer.run(), name="checkpoint")
    forwarding = Forwarding(collector.adverts, settings)
    collector.forward(forwarding)
    for visit in forwarding.visits:
        rt.loop(visit.keep_connected(), name=f"pool {visit.name}")
    rt.loop(collector.advertise(registrar, forwarding), name="advertise")
    _measure(rt.telemetry, collector, registrar)
    rt.ready()
    await rt.stopping.wait()


def _measure(telemetry: Telemetry, collector: Collector, registrar: Registrar) -> None:
    telemetry.observe(
        metrics.ADS, lambda: {(kind,): count for kind, count in collector.adverts.counts().items()}
    )
    telemetry.observe(
        metrics.SLOTS, lambda: {(state,): count for state, count in collector.slots.counts().items()}
    )
    telemetry.observe(metrics.MACHINES, lambda: registrar.total)


def _requirements(text: str) -> Node | None:
    if not text.strip():
        return None
    try:
        return parse(text)
    except ClassAdParseError as error:
        raise SettingsError(
            f"KETTLE_COLLECTOR_ABSENT_REQUIREMENTS: {text!r} is no expression: {error}."
        ) from error
