"""
The credential of a machine that a person has let in ends after some days; its master has iam renew it before.

The new one is good for connections that are made from then on, and the server ends the one that is there when the old one ends.
"""

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.bus.credentials import Credential
from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.commands.own_machines import RENEW_WORKER, RenewWorker

_IAM: Final = "iam"
_LEFT: Final = 1 / 3
"""The part of its life that a credential still has when it is renewed."""
_LEAST: Final = 1 / 10
"""The part of its life that passes between two renewals, whatever our clock says."""
_AGAIN_S: Final = 3600.0
"""After so long a refusal may be none any more."""

_log: Final = logging.getLogger(__name__)


def due(issued: float, expires: float) -> float:
    """When a credential is renewed."""
    return expires - (expires - issued) * _LEFT


async def keep_renewed(bus: Bus, path: Path) -> None:
    """Renew what is in the file whenever it is time; returns if it does not end."""
    waits, least = Waits(Backoff(first=1.0, longest=60.0)), 0.0
    while True:
        shown = Credential.read(path)
        issued, expires = shown.life
        if not expires:
            return
        await asyncio.sleep(max((expires - issued) * least, due(issued, expires) - time.time()))
        try:
            renewal = await bus.call(RENEW_WORKER, _IAM, RenewWorker())
        except RefusedError as refusal:
            _log.warning("this machine is in the pool until %s: %s", time.ctime(expires), refusal)
            await asyncio.sleep(_AGAIN_S)
        except BusError as error:
            _log.info("the credential is not renewed yet: %s", error)
            await waits.wait()
        else:
            waits.reset()
            least = _LEAST
            await asyncio.to_thread(
                write_private, path, msgspec.structs.replace(shown, jwt=renewal.jwt).text()
            )
            _log.info("renewed the credential of this machine", extra={"until": renewal.expires})
