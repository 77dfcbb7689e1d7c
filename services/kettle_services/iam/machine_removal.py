"""Machines whose credential is not good any more: their connections are ended, however that was decided."""

import logging
import time
from typing import Final

from kettle.bus.ports import BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.iam.domain import machine_grants
from kettle_services.iam.domain.joining_states import Worker
from kettle_services.iam.ports import PoolMaster
from kettle_services.iam.record import Record
from kettle_wire.codes import RefusalCode

_LOOK_S: Final = 60.0
_BACKOFF: Final = Backoff(first=0.1, longest=10.0)

_log: Final = logging.getLogger(__name__)


class MachineRemoval:
    """Ends them."""

    def __init__(self, record: Record, master: PoolMaster) -> None:
        self._record = record
        self._master = master
        self._withdrawn = False
        record.changes.on_withdrawal(self._note)

    def _note(self, _token: str) -> None:
        self._withdrawn = True

    async def cut_off(self, machine: str) -> None:
        """
        Have the server believe a machine no more, if there is one of this name; `unavailable`: nobody could tell the server.
        """
        known = self._record.register.find(Worker, f"worker/{machine}")
        if known is None:
            return
        try:
            await self._cut_off(known)
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE,
                f"{machine} was not removed, for its connection could not be ended: {error}",
            ) from error

    async def _cut_off(self, known: Worker) -> None:
        if known.joins == "schedd":
            await self._master.forget(known.worker)
        await self._master.cut_off(known.joins, known.key)

    async def keep(self) -> None:
        """
        Remove machines that people have let in as soon as what they have shown is good no more; never returns.
        """
        waits = Waits(_BACKOFF)
        while True:
            seen, self._withdrawn = self._record.changes.count, False
            try:
                await self._remove_strangers()
            except BusError as error:
                _log.warning("machines stay whose owners are not welcome any more: %s", error)
                await waits.wait()
                continue
            waits.reset()
            if not self._withdrawn:
                await self._record.changes.after(seen, within=_LOOK_S)

    async def _remove_strangers(self) -> None:
        register, now = self._record.register, time.time()
        if tokens := machine_grants.withdrawn_tokens(register, now=now):
            await self._record.record(tokens)
        for worker in list(machine_grants.strangers(register, now=now)):
            await self._cut_off(worker)
            if register.find(Worker, f"worker/{worker.worker}") == worker:
                await self._record.record(machine_grants.gone(worker, now=now))
            _log.info("removed a machine: what let it in is good no more", extra={"worker": worker.worker})
