"""
Owning a shard: one process owns it, and any number of others are standbys.

A lease on the bus elects a process; the epoch in the database decides which process may write. So a lost lease is not a
reason to stop: as long as no other process has raised the epoch, the owner remains owner, and asks for the lease again.
A process that is elected meanwhile raises the epoch, and the old owner notices that at its next append or check,
whichever comes first.
"""

import asyncio
import logging
import os
import socket
from typing import Final

from kettle import VERSION
from kettle.bus.ports import Bus
from kettle.eventsourcing import replay
from kettle.eventsourcing.log import Log
from kettle.eventsourcing.relay import not_ahead, relay
from kettle.eventsourcing.shard import Shard
from kettle.faults import fault_point
from kettle.runtime.leader_election import Candidacy
from kettle.runtime.service import Runtime
from kettle.runtime.settings import OwnerSettings
from kettle_wire.subjects import Subjects

HESITATION: Final = 1.0
"""Seconds of waiting for the lease after which a process says that it stands by."""

_log: Final = logging.getLogger(__name__)


async def own_shard(rt: Runtime, settings: OwnerSettings, bus: Bus, log: Log, name: str) -> Shard | None:
    """
    Wait until the shard `name` is ours and keep it: its loops commit, guard and publish until the service ends.

    The lease is given back when the service has ended, and the next in line elected at once. None: the service was
    asked to stop before it was its turn.
    """
    candidacy = await rt.enter(Candidacy.enter(settings, rt.role, name))
    rt.loop(candidacy.failure(), name="lease")
    if not await _elected(rt, candidacy, name):
        return None
    fault_point("takeover.elected")
    shard = await rt.enter(Shard.own(log, name, owner=f"{socket.gethostname()}:{os.getpid()}"))
    fault_point("takeover.fenced")
    await not_ahead(bus, shard, Subjects(settings.pool))
    _log.info("owns %s", name, extra={"epoch": shard.tenure.epoch, "frame": shard.frame})
    rt.loop(shard.run(), name="commit")
    rt.loop(shard.guard(settings.owner_lease / 2), name="guard")
    rt.loop(relay(bus, log, shard, Subjects(settings.pool)), name="relay")
    await bus.serve(replay.ROLE, name, [replay.served_frames(log, name)], version=VERSION)
    return shard


async def _elected(rt: Runtime, candidacy: Candidacy, name: str) -> bool:
    election = asyncio.ensure_future(candidacy.elected())
    stop = asyncio.ensure_future(rt.stopping.wait())
    try:
        done, _ = await asyncio.wait({election}, timeout=HESITATION)
        if not done:
            _log.info("stands by for %s", name)
            rt.standby()
            await asyncio.wait({election, stop}, return_when=asyncio.FIRST_COMPLETED)
        return election.done()
    finally:
        election.cancel()
        stop.cancel()
