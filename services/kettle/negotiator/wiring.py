"""How the parts of a negotiator hang together."""

from typing import Final

from kettle.bus.ports import Served
from kettle.faults import fault_point
from kettle.negotiator.record import Record
from kettle.negotiator.service import Negotiator
from kettle.negotiator.settings import NegotiatorSettings
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus, join_log
from kettle.runtime.owning import own
from kettle.wire.commands.negotiator import WHY
from kettle.wire.subjects import Subjects

VERSION: Final = "0.1.0"


async def serve(rt: Runtime, settings: NegotiatorSettings) -> None:
    """Own the shard, follow the ads, negotiate, until the process is asked to stop."""
    subjects = Subjects(settings.pool)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own(rt, settings, bus, log, "negotiator")
    if shard is None:
        return
    record = Record(shard)
    await record.recall(log, settings.remembered)
    fault_point("takeover.restored")
    negotiator = Negotiator(bus, subjects, record, settings, rt.telemetry)
    rt.loop(negotiator.watch_slots(), name="slots")
    rt.loop(negotiator.watch_secrets(), name="secrets")
    rt.loop(negotiator.watch_submitters(), name="submitters")
    rt.loop(negotiator.run(), name="negotiate")
    rt.loop(negotiator.advertise(), name="advertise")
    await bus.serve("negotiator", settings.name, [Served(WHY, record.why)], version=VERSION)
    rt.ready()
    await rt.stopping.wait()
