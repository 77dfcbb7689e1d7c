"""How the parts of a collector hang together."""

import time
from typing import Final

from kettle.bus.ports import BucketSpec, Served
from kettle.collector.domain.machines import Machines
from kettle.collector.record import SHARD, Record, recall
from kettle.collector.service import Collector
from kettle.collector.settings import CollectorSettings
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus, join_log
from kettle.runtime.owning import own
from kettle.storage import PgWorkingSet
from kettle.wire.commands.collector import QUERY_ADS
from kettle.wire.subjects import Subjects

VERSION: Final = "0.1.0"


async def serve(rt: Runtime, settings: CollectorSettings) -> None:
    """Make the buckets, own the shard, follow the ads, answer, until the process is asked to stop."""
    subjects = Subjects(settings.pool)
    bus = await join_bus(rt, settings)
    for bucket in (subjects.ads, subjects.private_ads):
        await bus.ensure_bucket(BucketSpec(name=bucket, ttl=settings.classad_lifetime))
    log = await join_log(rt, settings)
    shard = await own(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    checkpointer, joined = await recall(log, PgWorkingSet(log.database), shard)
    fault_point("takeover.restored")
    machines = Machines(joined, deadline=time.time() + settings.classad_lifetime)
    collector = Collector(bus, subjects, settings, Record(shard, checkpointer), machines)
    rt.loop(checkpointer.run(), name="checkpoint")
    rt.loop(collector.watch(), name="watch")
    rt.loop(collector.keep_house(), name="housekeeping")
    rt.loop(collector.advertise(), name="advertise")
    rt.readiness("ads", collector.complete.is_set)
    await bus.serve("collector", settings.name, [Served(QUERY_ADS, collector.query_ads)], version=VERSION)
    rt.ready()
    await rt.stopping.wait()
