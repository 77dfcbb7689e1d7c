"""How the parts of a negotiator hang together."""

import os
import socket
from typing import Final

from kettle.bus.ports import Served
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.negotiator.record import Record
from kettle.negotiator.service import Negotiator
from kettle.negotiator.settings import NegotiatorSettings
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus, join_log
from kettle.wire.commands.negotiator import WHY
from kettle.wire.subjects import Subjects

VERSION: Final = "0.1.0"
GUARD: Final = 1.0
"""Seconds between looks whether the shard is still ours."""


async def serve(rt: Runtime, settings: NegotiatorSettings) -> None:
    """Own the shard, follow the ads, negotiate, until the process is asked to stop."""
    subjects = Subjects(settings.pool)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    owner = f"{socket.gethostname()}:{os.getpid()}"
    shard = await rt.enter(Shard.own(log, "negotiator", owner=owner))
    record = Record(shard)
    await record.recall(log, settings.remembered)
    negotiator = Negotiator(bus, subjects, record, settings, rt.telemetry)
    rt.loop(shard.run(), name="commit")
    rt.loop(shard.guard(GUARD), name="guard")
    rt.loop(relay(bus, log, shard, subjects), name="relay")
    rt.loop(negotiator.watch_slots(), name="slots")
    rt.loop(negotiator.watch_secrets(), name="secrets")
    rt.loop(negotiator.watch_submitters(), name="submitters")
    rt.loop(negotiator.run(), name="negotiate")
    rt.loop(negotiator.advertise(), name="advertise")
    await bus.serve("negotiator", settings.name, [Served(WHY, record.why)], version=VERSION)
    rt.ready()
    await rt.stopping.wait()
