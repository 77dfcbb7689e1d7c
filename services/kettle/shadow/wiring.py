"""How the parts of a shadow hang together."""

import asyncio
import logging
from typing import Final

from kettle.bus.ports import Bus, Served, StreamSpec
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus
from kettle.shadow.service import Shadow
from kettle.shadow.settings import ShadowSettings
from kettle.userlog import Appender, Checkpoint, UserLogError, UserLogProjector, Writer, follow
from kettle.wire.commands.shadow import FETCH_INPUT, LOOK_AFTER
from kettle.wire.subjects import Subjects

VERSION: Final = "0.1.0"
WORK_AGE: Final = 7 * 86400.0
"""Seconds that a worker's report is kept on the bus for a shadow that is away."""

_log: Final = logging.getLogger(__name__)


async def serve(rt: Runtime, settings: ShadowSettings) -> None:
    """Look after jobs until the process is asked to stop; what runs goes on, and the next shadow takes it over."""
    subjects = Subjects(settings.pool)
    bus = await join_bus(rt, settings)
    await bus.ensure_stream(
        StreamSpec(
            name=subjects.work_stream, subjects=[subjects.work_all], max_age=WORK_AGE, max_bytes=1 << 30
        )
    )
    async with asyncio.TaskGroup() as tasks:
        shadow = Shadow(bus, subjects, settings, tasks, rt.telemetry)
        await bus.serve(
            "shadow",
            settings.name,
            [Served(LOOK_AFTER, shadow.look_after), Served(FETCH_INPUT, shadow.fetch_input)],
            version=VERSION,
        )
        await bus.listen(
            subjects.notice("schedd", settings.schedd), lambda _subject, _data: shadow.schedd_came_back()
        )
        await bus.listen(subjects.notices("startd"), lambda _, name: shadow.startd_came_back(name.decode()))
        loops = [
            tasks.create_task(shadow.listen(), name="listen"),
            tasks.create_task(shadow.keep_in_step(), name="keep in step"),
            tasks.create_task(shadow.reporter.run(), name="report"),
            tasks.create_task(_write_user_logs(bus, subjects, settings), name="user logs"),
        ]
        rt.ready()
        await rt.stopping.wait()
        for loop in loops:
            loop.cancel()
        shadow.close()


async def _write_user_logs(bus: Bus, subjects: Subjects, settings: ShadowSettings) -> None:
    """Follow the schedd's record into the job event logs that its jobs name; for ever."""
    settings.state_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    checkpoint = Checkpoint(settings.state_path / f"userlog.{settings.schedd}")
    projector = UserLogProjector(settings.schedd, snapshot=checkpoint.load())
    shard = f"schedd.{settings.schedd}"
    stream = subjects.event_stream(shard)
    # What this process's predecessor wrote after its last checkpoint is in the files already: it is compared, not repeated.
    redelivered = await bus.last_sequence(stream) or 0
    writer = Writer(Appender(), redelivered=redelivered, failed=_not_written)
    frames = bus.consume(stream, "", subject=subjects.events(shard), after=projector.frame, ephemeral=True)
    await follow(frames, projector, writer, checkpoint)


def _not_written(error: UserLogError) -> None:
    _log.warning("%s", error, extra={"path": str(error.path)})
