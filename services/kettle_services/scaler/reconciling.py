"""Asks each provider which machines it has, again and again, and looks whether we hear what machines say."""

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle.retry.backoff import steady
from kettle.retry.loop import Waits
from kettle_services.scaler.domain.leases.reconciling import ended, listed
from kettle_services.scaler.provisioning import Provisioning
from kettle_services.scaler.settings import ScalerSettings
from kettle_wire.commands.provisioner import (
    FIND_MACHINES,
    LIST_PROVIDERS,
    FindMachines,
    ListProviders,
    MachinesFound,
    Trouble,
)
from kettle_wire.leases import LeaseState
from kettle_wire.subjects import Subjects

_SPREAD: Final = 0.2
_AGAIN_S: Final = 1.0
"""Until the first answer of a provider it is asked so often."""
_LISTEN_S: Final = 5.0
"""From one word to ourselves to the next; three that are not heard mean that we do not hear machines either."""
_DEAF_S: Final = 15.0

_log: Final = logging.getLogger(__name__)


class Reconciling:
    """The loops."""

    def __init__(self, bus: Bus, provisioning: Provisioning, settings: ScalerSettings) -> None:
        self._bus = bus
        self._provisioning = provisioning
        self._settings = settings
        self._heard = 0.0
        self._subjects: Final = Subjects(settings.pool)
        self._subject = self._subjects.notice("scaler", settings.name)

    async def run(self) -> None:
        """Ask each provider that is set up somewhere, or has machines of ours."""
        running: set[str] = set()
        async with asyncio.TaskGroup() as tasks:
            while True:
                for provider in {*await self._known(), *self._used()} - running:
                    running.add(provider)
                    tasks.create_task(self._reconcile(provider))
                await asyncio.sleep(_AGAIN_S)

    async def _known(self) -> Iterable[str]:
        try:
            reply = await self._bus.call(LIST_PROVIDERS, self._settings.provisioner, ListProviders())
        except BusError:
            return ()
        return [each.name for each in reply.providers]

    def _used(self) -> Iterable[str]:
        book = self._provisioning.book
        yield from (lease.provider for lease in book.leases.values())
        yield from (orphan.found.provider for orphan in book.orphans.values())

    async def _reconcile(self, provider: str) -> None:
        while True:
            try:
                found = await self._bus.call(
                    FIND_MACHINES,
                    self._settings.provisioner,
                    FindMachines(provider=provider),
                    deadline=self._settings.answer,
                )
            except BusError as error:
                found = MachinesFound(trouble=Trouble(error=None, words=f"no provisioner answers: {error}"))
            decision = self._provisioning.decision()
            listed(decision, provider, found)
            await self._provisioning.carry_out(decision)
            await Waits(steady(self._pause(provider), spread=_SPREAD)).wait()

    def _pause(self, provider: str) -> float:
        book, seen = self._provisioning.book, self._provisioning.seen
        if provider not in seen.listed:
            return _AGAIN_S
        doubtful = any(
            lease.state is LeaseState.IN_DOUBT or lease.id in seen.absent
            for lease in book.leases.values()
            if lease.provider == provider
        )
        return self._settings.doubt_interval if doubtful else self._settings.reconcile_interval

    async def listen(self) -> None:
        """
        Say something to ourselves, by way of the bus: while that is not heard, the silence of machines means nothing.
        """
        await self._bus.listen(self._subject, lambda _subject, _data: self._hear())
        await self._bus.listen(self._subjects.notices("provisioner"), self._ended)
        seen = self._provisioning.seen
        while True:
            try:
                await self._bus.publish(self._subject, b"")
            except BusError as error:
                _log.info("nothing can be said", extra={"cause": str(error)})
            await asyncio.sleep(_LISTEN_S)
            if time.monotonic() - self._heard > _DEAF_S:
                seen.sound = None

    def _ended(self, subject: str, data: bytes) -> None:
        """A provisioner says that a machine has ended: its provider is asked for that one."""
        provider, handle = self._subjects.noticed(subject), data.decode(errors="replace")
        decision = self._provisioning.decision()
        ended(decision, provider, handle)
        self._provisioning.act(decision.acts)

    def _hear(self) -> None:
        self._heard = time.monotonic()
        seen = self._provisioning.seen
        if seen.sound is None:
            seen.sound = time.time()
