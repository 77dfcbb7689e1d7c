"""How the parts of a shadow hang together."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, Final

from kettle import VERSION
from kettle.bus.batching import BatchingDelay, Pacing
from kettle.bus.ports import Batch, Bus, Served, StreamSpec
from kettle.eventsourcing.replay import head_frame, missing_frames
from kettle.runtime import Runtime, Telemetry
from kettle.runtime.pool_connections import join_bus
from kettle.userlog import Checkpoint, Projector, UserLogError, UserLogProjector, Writer, follow
from kettle_services.shadow.owners import Owners
from kettle_services.shadow.projections.event_log import EventLog
from kettle_services.shadow.projections.job_event_logs import JobAppender
from kettle_services.shadow.projections.mail import MailProjector
from kettle_services.shadow.projections.mail_delivery import MailOutbox, Postman
from kettle_services.shadow.service import Shadow
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.addresses import daemon_address
from kettle_wire.commands.shadow import LOOK_AFTER
from kettle_wire.subjects import Subjects

WORK_AGE: Final = 7 * 86400.0
"""Seconds that a worker's report is kept on the bus for a shadow that is away."""
_REPORTS: Final = 1_000_000
"""Very small ones would cost the server more memory than their bytes."""
GATHER_S: Final = 0.05
"""How long an event may wait for others that are written into a log, or a mail, with it."""
_FRAMES_AT_ONCE: Final = 8
"""
How many frames after a pause are written into the logs as they come: a brief job that is alone has five, from its submission to
its end, and the script that watches its log waits for the last one.
"""

_log: Final = logging.getLogger(__name__)


async def serve(rt: Runtime, settings: ShadowSettings) -> None:
    """
    Look after jobs until the process is asked to stop; what runs goes on, and the next shadow takes it over.
    """
    bus = await join_bus(rt, settings)
    joined = bool(bus.identity.access_point)
    async with running(bus, settings, telemetry=rt.telemetry, joined=joined):
        rt.ready()
        await rt.stopping.wait()


@asynccontextmanager
async def running(
    bus: Bus, settings: ShadowSettings, *, telemetry: Telemetry | None = None, joined: bool = False
) -> AsyncGenerator[Shadow]:
    """A shadow that answers on the bus while the context lasts; it waits for nobody at its end."""
    subjects = Subjects(settings.pool)
    await bus.ensure_stream(
        StreamSpec(
            name=subjects.work_stream,
            subjects=[subjects.work_all],
            max_age=WORK_AGE,
            max_bytes=1 << 30,
            max_messages=_REPORTS,
        )
    )
    async with asyncio.TaskGroup() as tasks:
        shadow = Shadow(bus, subjects, settings, tasks, telemetry or Telemetry(), joined=joined)
        try:
            await bus.serve(
                "shadow",
                settings.name,
                [
                    Served(LOOK_AFTER, shadow.look_after),
                    *shadow.served(),
                    *shadow.spooling.served(),
                    *shadow.outputs.served(),
                ],
                version=VERSION,
            )
            await bus.listen(
                subjects.notice("schedd", settings.schedd), lambda _subject, _data: shadow.schedd_came_back()
            )
            await bus.listen(
                subjects.notices("startd"),
                lambda subject, _: shadow.startd_came_back(subjects.noticed(subject)),
            )
            loops = [
                tasks.create_task(shadow.listen(bus, subjects, settings.schedd), name="listen"),
                tasks.create_task(shadow.keep_in_step(), name="keep in step"),
                tasks.create_task(shadow.reporter.send_reports(), name="report"),
                tasks.create_task(shadow.cleaner.run(), name="checkpoints"),
                tasks.create_task(_write_user_logs(bus, subjects, settings, shadow.owners), name="user logs"),
            ]
            if settings.event_log:
                loops.append(
                    tasks.create_task(_keep_event_log_always(bus, subjects, settings), name="event log")
                )
            if settings.mail_server:
                loops.append(tasks.create_task(_mail_always(bus, subjects, settings), name="mail"))
            yield shadow
            for loop in loops:
                loop.cancel()
        finally:
            shadow.close()


async def _write_user_logs(bus: Bus, subjects: Subjects, settings: ShadowSettings, owners: Owners) -> None:
    """Write the schedd's events into the job event logs that its jobs name; never returns."""
    settings.state_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    checkpoint = Checkpoint(settings.state_path / f"userlog.{settings.schedd}")
    make = partial(
        UserLogProjector,
        daemon_address(settings.nats_url, settings.schedd).strip("<>"),
        schedd=settings.schedd,
        options=settings.default_userlog_format_options,
    )
    projector = make(snapshot=checkpoint.load())
    shard = f"schedd.{settings.schedd}"
    if not await _is_of_log(bus, shard, projector):
        projector = make(told_until=_told_until(projector))
    # What this process's predecessor wrote after its last checkpoint is in the files already: it is compared, not repeated.
    redelivered = await _head(bus, subjects, shard)
    writer = Writer(
        JobAppender(owners, spool=settings.spooled_path),
        redelivered=redelivered,
        failed=_not_written,
    )
    # After a pause at once: scripts submit, and in the next line they look into the log.
    gather = Pacing(GATHER_S, at_once=_FRAMES_AT_ONCE)
    frames = _frames(bus, subjects, shard, projector.frame, gather=gather)
    await follow(frames, projector, writer, checkpoint, partial(missing_frames, bus, shard))


async def _keep_event_log_always(bus: Bus, subjects: Subjects, settings: ShadowSettings) -> None:
    """Keep the access point's event log; never returns.  A failed write must not affect jobs."""
    while True:
        try:
            await _keep_event_log(bus, subjects, settings)
        except Exception as error:  # noqa: BLE001 - the runner of the log: no other task is to be cancelled for it
            _log.warning(
                "the event log is not written for the moment: tried again in %g s, from where it stands",
                settings.event_log_retry,
                extra={"cause": f"{type(error).__name__}: {error}"},
            )
        await asyncio.sleep(settings.event_log_retry)


async def _keep_event_log(bus: Bus, subjects: Subjects, settings: ShadowSettings) -> None:
    """Write the schedd's events into the event log; never returns."""
    settings.state_path.mkdir(mode=0o700, parents=True, exist_ok=True)
    shard = f"schedd.{settings.schedd}"
    head = await _head(bus, subjects, shard)
    log = await asyncio.to_thread(EventLog, settings, head=head)
    if not await _is_of_log(bus, shard, log.projector):
        log.close()
        log = await asyncio.to_thread(EventLog, settings, head=head, told_until=_told_until(log.projector))
    try:
        frames = _frames(bus, subjects, shard, log.projector.frame, gather=BatchingDelay(GATHER_S))
        await follow(frames, log.projector, log, log, partial(missing_frames, bus, shard))
    finally:
        log.close()


async def _mail_always(bus: Bus, subjects: Subjects, settings: ShadowSettings) -> None:
    """Send mail; never returns.  A full disk, or an unexpected mail, must not affect jobs."""
    while True:
        try:
            await _send_mail(bus, subjects, settings)
        except Exception:  # noqa: BLE001 - the runner of mail: no other task is to be cancelled for it
            _log.exception("mail is not sent for the moment: tried again in %g s", settings.mail_retry)
        await asyncio.sleep(settings.mail_retry)


async def _send_mail(bus: Bus, subjects: Subjects, settings: ShadowSettings) -> None:
    """Make the mails that jobs want from the schedd's events, and send them; never returns."""
    directory = settings.state_path / f"mail.{settings.schedd}"
    shard = f"schedd.{settings.schedd}"
    checkpoint = Checkpoint(directory / "state")
    projector = MailProjector(settings.schedd, snapshot=checkpoint.load())
    head, is_of_log = await _head(bus, subjects, shard), await _is_of_log(bus, shard, projector)
    outbox = MailOutbox(directory, settings, head=head, restored=not is_of_log)
    if not is_of_log:
        projector = MailProjector(settings.schedd, told_until=_told_until(projector))
    frames = _frames(bus, subjects, shard, projector.frame, gather=BatchingDelay(GATHER_S))
    async with asyncio.TaskGroup() as both:
        both.create_task(Postman(outbox, settings).run())
        both.create_task(follow(frames, projector, outbox, checkpoint, partial(missing_frames, bus, shard)))


async def _is_of_log(bus: Bus, shard: str, projector: Projector[Any]) -> bool:
    """
    Whether the log has the frame up to which a projector has read, and not another one of its number; waits for the owner.

    It has not if it was restored from an older copy: what the projector knows of jobs may be of others that had their numbers. It reads
    everything once more then, and tells what was recorded after what it had read.
    """
    if not projector.frame:
        return True
    if projector.frame <= await head_frame(bus, shard):
        async with aclosing(missing_frames(bus, shard, projector.frame - 1, projector.frame)) as found:
            if projector.at in {0, (await anext(found)).at}:
                return True
    _log.warning(
        "the log was restored from an older copy, and is read again from its beginning",
        extra={"shard": shard},
    )
    return False


def _told_until(projector: Projector[Any]) -> int:
    """Until when a projector has told what was recorded, microseconds since the epoch."""
    return projector.at or time.time_ns() // 1000


async def _head(bus: Bus, subjects: Subjects, shard: str) -> int:
    """The newest frame of a shard, as far as the bus knows, or else its owner."""
    newest = await bus.last_sequence(subjects.event_stream(shard))
    return await head_frame(bus, shard) if newest is None else newest


def _frames(
    bus: Bus, subjects: Subjects, shard: str, after: int, *, gather: BatchingDelay
) -> AsyncGenerator[Batch, None]:
    """The events after a frame, for the projections that write files for people."""
    return bus.consume(
        subjects.event_stream(shard),
        "",
        subject=subjects.events(shard),
        after=after,
        ephemeral=True,
        gather=gather,
    )


def _not_written(error: UserLogError) -> None:
    _log.warning("%s", error, extra={"path": str(error.path)})
