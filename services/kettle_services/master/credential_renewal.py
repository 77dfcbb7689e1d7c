"""
The credential of a machine that a person has let in ends after some days; its master has iam renew it before.

The new one is good for connections that are made from then on, and the server ends the one that is there when the old one ends.
None is got any more then: without a credential there is no connection to ask on.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.bus.credentials import Credential
from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Sleep, Waits, slept
from kettle_wire.commands.own_machines import RENEW_WORKER, RenewWorker

_IAM: Final = "iam"
_LEFT: Final = 1 / 3
"""The part of its life that a credential still has when it is renewed."""
_LEAST: Final = 1 / 10
"""The part of its life that passes between two answers, whatever our clock says: several fit into what it still has."""
_AGAIN_S: Final = 3600.0
"""No more than that passes: a refusal may be none any more, and a machine may be awake for an hour a day."""
_GLANCE_S: Final = 60.0
"""
So often the clock is looked at: a sleep does not go on while the machine is asleep, and knows nothing of a clock that is set.
"""

_log: Final = logging.getLogger(__name__)


def due(issued: float, expires: float) -> float:
    """When a credential is renewed."""
    return expires - (expires - issued) * _LEFT


async def keep_renewed(
    bus: Bus, path: Path, *, clock: Callable[[], float] = time.time, sleep: Sleep = slept
) -> None:
    """Renew what is in the file whenever it is time; returns if it does not end."""
    waits, rest, back = Waits(Backoff(first=1.0, longest=60.0)), 0.0, asyncio.Event()
    bus.on_return(back.set)
    while True:
        shown = Credential.read(path)
        issued, expires = shown.life
        if not expires:
            return
        await sleep(rest)
        while (left := due(issued, expires) - clock()) > 0:
            back.clear()
            await sleep(min(left, _GLANCE_S), back)
        rest = min(_AGAIN_S, (expires - issued) * _LEAST)
        try:
            renewal = await bus.call(RENEW_WORKER, _IAM, RenewWorker())
        except RefusedError as refusal:
            _log.warning("this machine is in the pool until %s: %s", time.ctime(expires), refusal)
        except BusError as error:
            _log.info("the credential is not renewed yet: %s", error)
            rest = waits.delay()
        else:
            waits.reset()
            await asyncio.to_thread(
                write_private, path, msgspec.structs.replace(shown, jwt=renewal.jwt).text()
            )
            _log.info("renewed the credential of this machine", extra={"until": renewal.expires})
