"""
Whose jobs alone a machine takes that has joined by a token for one person or one accounting group: told to negotiators, who look at nothing that the
machine says of itself about this.

The bus may forget it; what counts is the record.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from kettle.bus.ports import BucketSpec, Bus, BusError, KeyChange
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.iam.domain.joining_states import Worker
from kettle_services.iam.record import Record
from kettle_wire.machine_owners import owner_entry
from kettle_wire.subjects import Subjects, token

_log: Final = logging.getLogger(__name__)


class MachineOwners:
    """Keeps the bucket equal to the record."""

    def __init__(self, bus: Bus, subjects: Subjects, record: Record) -> None:
        self._bus = bus
        self._bucket: Final = subjects.machine_owners
        self._record = record
        self._again = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        bus.on_return(self._again.set)

    async def tell(self) -> None:
        """Say what the record says now; raises BusError."""
        async with self._one_at_a_time:  # else who began with an older record would end last
            await self._tell()

    async def _tell(self) -> None:
        wanted = {
            token(each.worker): owner_entry(each.owner, each.group)
            for each in self._record.register.all(Worker)
            if each.joins == "worker" and (each.owner or each.group)
        }
        await self._bus.ensure_bucket(BucketSpec(name=self._bucket, memory=False))
        there = await self._there()
        for key, owner in wanted.items():
            known = there.get(key)
            if known is None or known.value != owner:
                await self._bus.update(self._bucket, key, owner, expect=known.revision if known else 0)
        for key in there.keys() - wanted.keys():
            await self._bus.delete(self._bucket, key)

    async def _there(self) -> Mapping[str, KeyChange]:
        found: dict[str, KeyChange] = {}
        async for change in self._bus.watch(self._bucket):
            if change is None:
                break
            if change.value is not None:
                found[change.key] = change
            else:
                found.pop(change.key, None)
        return found

    async def keep(self) -> None:
        """Say it again whenever the bus may have forgotten it; never returns."""
        waits = Waits(Backoff(first=0.5, longest=10.0))
        while True:
            await self._again.wait()
            self._again.clear()
            try:
                await self.tell()
            except BusError as error:
                _log.warning("negotiators are not told whose jobs machines take: %s", error)
                self._again.set()
                await waits.wait()
            else:
                waits.reset()
