"""
Bans of people who come to the bus by an account of a machine.

The master of the server's machine is told, which signs for those there; and services are told, of which those of an access point
that has joined have nobody else who keeps its accounts out.
"""

import asyncio
import logging
import time
from typing import Final

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.iam.domain.state import Ban
from kettle_services.iam.people.told import ToldPeople
from kettle_services.iam.record import Record
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.master import SHUT_OUT, ShutOut

_BACKOFF: Final = Backoff(first=0.1, longest=10.0)
_USER: Final = "user:"
_LOOK_S: Final = 60.0
_SAY_S: Final = 5.0
"""After so long it is noticed that the bus was away."""

_log: Final = logging.getLogger(__name__)


async def tell_bans(record: Record, bus: NatsBus, master: str) -> None:
    """
    Tell who is banned, at the start and whenever that changes; returns only if this master's server is not ours.
    """
    told: list[str] | None = None
    waits = Waits(_BACKOFF)
    while True:
        seen = record.changes.count
        banned = sorted(_banned(record))
        if banned != told:
            try:
                await bus.call(SHUT_OUT, master, ShutOut(people=banned))
                told = banned
                waits.reset()
            except RefusedError as refusal:
                if refusal.code == RefusalCode.UNAVAILABLE:
                    _log.warning("bans do not reach those who have accounts on the bus: %s", refusal)
                    return
                await waits.wait()
                continue
            except BusError as error:
                _log.log(
                    logging.DEBUG if waits.failures else logging.WARNING, "bans wait to be told: %s", error
                )
                await waits.wait()
                continue
        await record.changes.after(seen, within=_LOOK_S)


class SaidBans:
    """Says to services who is banned."""

    def __init__(self, record: Record, bus: NatsBus, told: ToldPeople) -> None:
        self._record = record
        self._told = told
        self._turn = asyncio.Lock()
        self._lost = False
        bus.on_return(self._may_be_lost)

    def _may_be_lost(self) -> None:
        self._lost = True

    async def say(self) -> None:
        """
        Say what is new of it, and all of it after the bus was away; returns when services find it. Raises
        BusError.
        """
        async with self._turn:
            if self._lost:
                await self._told.open()
                self._lost = False
            await self._told.ban(_banned(self._record))

    async def keep(self) -> None:
        """Say it at the start, whenever it changes, and when bans end by themselves; never returns."""
        waits = Waits(_BACKOFF)
        while True:
            seen = self._record.changes.count
            try:
                await self.say()
            except BusError as error:
                _log.log(
                    logging.DEBUG if waits.failures else logging.WARNING, "bans wait to be said: %s", error
                )
                await waits.wait()
                continue
            waits.reset()
            await self._record.changes.after(seen, within=_SAY_S)


def _banned(record: Record) -> dict[str, str]:
    """
    Who is banned, each with the rest of the sentence that says so. The reason is for that person, and services of machines that have
    joined can read about everybody.
    """
    now = time.time()
    return {
        ban.whom.removeprefix(_USER): f"is banned by {ban.by}"
        for ban in record.register.all(Ban)
        if ban.whom.startswith(_USER) and (not ban.until or now < ban.until)
    }
