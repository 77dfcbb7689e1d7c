"""
The fan-out: frames of all shards in, single events out, each stored exactly once.

The stream itself remembers how far it has come: the last message of each batch carries the marks of all shards as a
note, batches are stored whole or not at all, and each names the sequence after which it must come.  So there is no
cursor that could disagree with the stream, and a second gateway, or the rest of a first one, stores nothing twice.
After any doubt a new session begins at the end of the stream.
"""

import asyncio
import logging
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, RefusedError, StreamSpec
from kettle.retry.loop import Waits, attempt
from kettle.runtime.service import leaves
from kettle_services.gateway.domain.batch import Mark, marks_of
from kettle_services.gateway.domain.cloud_events import Publisher
from kettle_services.gateway.domain.owner_cache import Owners
from kettle_services.gateway.job_owners import Registry
from kettle_services.gateway.metrics import Metrics
from kettle_services.gateway.settings import GatewaySettings
from kettle_services.gateway.stream_session import Parts, Session
from kettle_wire.codes import RefusalCode
from kettle_wire.subjects import Subjects

_log: Final = logging.getLogger(__name__)


class FanOut:
    """`began` is set when the first session runs: the stream is there, and the shards are known."""

    def __init__(self, bus: Bus, subjects: Subjects, settings: GatewaySettings, tally: Metrics) -> None:
        self._bus = bus
        self._spec = stream_spec(subjects, settings)
        self._tally = tally
        self._parts = Parts(
            bus=bus,
            subjects=subjects,
            registry=Registry(bus, Owners(settings.owners_kept)),
            publisher=Publisher(subjects, limit=settings.max_event_bytes),
            tally=tally,
            discovery=settings.discovery_interval,
        )
        self._doubt = asyncio.Event()
        bus.on_return(self._doubt.set)
        self.began = asyncio.Event()
        self.running = False
        """Whether a session runs now."""

    async def run(self) -> None:
        """
        Run without end. Raises errors that no new session repairs: an event that cannot be decoded, a missing
        permission.
        """
        waits = Waits()
        while True:
            try:
                await attempt(self._session(waits))
            except* RefusedError:
                raise
            except* BusError as group:
                for trouble in leaves(group):
                    _log.warning("the fan-out starts a new session: %s", trouble)
            finally:
                self.running = False
            await waits.wait()

    async def _session(self, waits: Waits) -> None:
        self._doubt.clear()
        await self._bus.ensure_stream(self._spec)
        last, note = await self._bus.last_note(self._spec.name)

        def begin() -> None:
            if not self.running:
                self._tally.begin_session()
                waits.reset()
            self.running = True
            self.began.set()

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(Session(self._parts, last, self._marks(note)).run(begin), name="session")
            tasks.create_task(self._until_doubtful(), name="doubt")

    async def _until_doubtful(self) -> None:
        await self._doubt.wait()
        raise BusError("the bus was away: what it has kept is to be seen")

    def _marks(self, note: str) -> dict[str, Mark]:
        try:
            return marks_of(note)
        except (msgspec.MsgspecError, ValueError) as error:
            raise RefusedError(
                RefusalCode.FOREIGN_NOTE,
                f"somebody else wrote the last message of {self._spec.name}: {error}",
            ) from error


def stream_spec(subjects: Subjects, settings: GatewaySettings) -> StreamSpec:
    """The stream MONITOR."""
    return StreamSpec(
        name=subjects.monitor_stream,
        subjects=[subjects.tail_all],
        transform=subjects.monitor_transform,
        together=True,
        max_messages=settings.monitor_messages,
        max_bytes=settings.monitor_bytes,
        max_age=settings.monitor_age,
    )
