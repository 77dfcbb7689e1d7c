"""Tells scalers that a machine may have ended, so that its provider is asked before it is its turn."""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle_services.provisioner.hosted import Hosted
from kettle_services.provisioner.port import TellsOfEnds
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)


async def tell_of_ends(bus: Bus, subjects: Subjects, hosted: Iterable[Hosted]) -> None:
    """
    Have all providers that can tell of ends of machines tell them; never returns. A notice that is lost costs time alone.
    """
    ended: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    for each in hosted:
        if isinstance(each.provider, TellsOfEnds):
            await each.provider.tell_of_ends(partial(_put, ended, each.name))
    while True:
        provider, handle = await ended.get()
        try:
            await bus.publish(subjects.notice("provisioner", provider), handle.encode())
        except BusError as error:
            _log.info("nobody is told that a machine has ended", extra={"cause": str(error)})


def _put(ended: asyncio.Queue[tuple[str, str]], provider: str, handle: str) -> None:
    _log.info("a machine has ended", extra={"provider": provider, "machine": handle})
    ended.put_nowait((provider, handle))
