"""
Owning a shard: one process does, any number stand by.

A lease on the bus elects who tries; the epoch in the database decides who may write. So a lost lease is no reason to
stop: as long as nobody else has raised the epoch, the owner owns, and asks for the lease again. Whoever is elected
meanwhile raises the epoch, and the old owner finds that out at its next append or look, whichever comes first.
"""

import asyncio
import logging
import os
import socket
from typing import Final, Self

from kettle.bus.leases import HeldLease, KeyLeases
from kettle.bus.ports import BucketSpec, Bus
from kettle.eventsourcing.log import Log
from kettle.eventsourcing.relay import relay
from kettle.eventsourcing.shard import Shard
from kettle.faults import fault_point
from kettle.runtime.presence import gone, presence
from kettle.runtime.service import Runtime
from kettle.wire.subjects import Subjects, key

GUARD: Final = 1.0
"""Seconds between looks whether the shard is still ours."""
HESITATION: Final = 1.0
"""Seconds of waiting for the lease after which a process says that it stands by."""
_KEPT_S: Final = 60.0
"""A lease bucket that was lost is taken for empty after this, if nobody writes his lease into it again."""

_log: Final = logging.getLogger(__name__)


async def own(
    rt: Runtime, bus: Bus, log: Log, subjects: Subjects, name: str, *, lease: float
) -> Shard | None:
    """
    Wait until the shard `name` is ours and keep it: its loops commit, guard and publish until the service ends.

    None: the service was asked to stop before it was its turn.

    `lease`, in seconds: how long the bus waits for a silent owner before it elects another. It is given back, and the
    next in line elected at once, when the service has ended.
    """
    await bus.ensure_bucket(BucketSpec(name=subjects.leases, ttl=_KEPT_S))
    candidacy = Candidacy(KeyLeases(bus, subjects.leases, gone=gone), key(name), ttl=lease)
    await rt.enter(candidacy)
    if not await _elected(rt, candidacy, name):
        return None
    fault_point("takeover.elected")
    shard = await rt.enter(Shard.own(log, name, owner=f"{socket.gethostname()}:{os.getpid()}"))
    fault_point("takeover.fenced")
    _log.info("owns %s", name, extra={"epoch": shard.tenure.epoch, "frame": shard.frame})
    rt.loop(candidacy.keep(), name="lease")
    rt.loop(shard.run(), name="commit")
    rt.loop(shard.guard(GUARD), name="guard")
    rt.loop(relay(bus, log, shard, subjects), name="relay")
    return shard


async def _elected(rt: Runtime, candidacy: "Candidacy", name: str) -> bool:
    election = asyncio.ensure_future(candidacy.win())
    stop = asyncio.ensure_future(rt.stopping.wait())
    try:
        done, _ = await asyncio.wait({election}, timeout=HESITATION)
        if not done:
            _log.info("stands by for %s", name)
            rt.standby()
            await asyncio.wait({election, stop}, return_when=asyncio.FIRST_COMPLETED)
        if election.done():
            election.result()
        return election.done()
    finally:
        for task in (election, stop):
            task.cancel()


class Candidacy:
    """
    One process's claim to be elected, for as long as the context lasts.
    """

    def __init__(self, leases: KeyLeases, key: str, *, ttl: float) -> None:
        self._leases = leases
        self._key = key
        self._ttl = ttl
        self._lease: HeldLease | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._lease is not None:
            await self._lease.release()

    async def win(self) -> None:
        """
        Wait until we are elected.
        """
        self._lease = await self._leases.acquire(self._key, presence(), ttl=self._ttl)

    async def keep(self) -> None:
        """
        Be elected again whenever the lease was lost; for ever.
        """
        while True:
            assert self._lease is not None, "elected first"
            await self._lease.lost
            _log.warning("the lease of %s ran out; owning on as long as nobody else does", self._key)
            await self.win()
