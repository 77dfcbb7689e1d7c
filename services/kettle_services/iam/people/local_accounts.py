"""
Bans of people who come to the bus by an account of the server's machine: the master, which signs for those, is told.
"""

import logging
import time
from typing import Final

from kettle.bus.nats import NatsBus
from kettle.bus.ports import BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.iam.domain.state import Ban
from kettle_services.iam.record import Record
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.master import SHUT_OUT, ShutOut

_BACKOFF: Final = Backoff(first=0.1, longest=10.0)
_USER: Final = "user:"
_LOOK_S: Final = 60.0

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


def _banned(record: Record) -> set[str]:
    now = time.time()
    return {
        ban.whom.removeprefix(_USER)
        for ban in record.register.all(Ban)
        if ban.whom.startswith(_USER) and (not ban.until or now < ban.until)
    }
