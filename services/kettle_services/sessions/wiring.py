"""How the parts of a service of interactive sessions hang together."""

import asyncio

from kettle import VERSION
from kettle.auth.mapping.levels import Level
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.authorizer import Authorizer
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.carrying import Carrying
from kettle_services.sessions.certificates import Certificates
from kettle_services.sessions.commands import SessionCommands, counted, counted_workers
from kettle_services.sessions.domain.state import SessionsState
from kettle_services.sessions.engine import Engine
from kettle_services.sessions.following import Following
from kettle_services.sessions.kept_files import KeptFiles
from kettle_services.sessions.members import MemberQuestions
from kettle_services.sessions.profile_file import ProfileFile
from kettle_services.sessions.reasons import Reasons
from kettle_services.sessions.record import Histories, Record, shard_of
from kettle_services.sessions.settings import SessionsSettings
from kettle_services.sessions.task_queues.wiring import task_queues
from kettle_wire.commands import sessions as commands
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry import session_metrics as metrics


async def serve(rt: Runtime, settings: SessionsSettings) -> None:
    """Own the shard, go on with the sessions, answer, until the process is asked to stop."""
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=(people := People()))
    shard = await own_shard(rt, settings, bus, log, shard_of(settings.name))
    if shard is None:
        return
    record = await Record.recall(
        log, PgWorkingSet(log.database), shard, SessionsState(), interval=settings.checkpoint_interval
    )
    fault_point("takeover.restored")
    profiles = ProfileFile(settings.profiles)
    await profiles.look()
    kept = KeptFiles(settings.home_path / shard_of(settings.name))
    engine = Engine(record, keep=settings.keep, most=settings.keep_most)
    await asyncio.to_thread(kept.forget, set(engine.living))
    following = Following(bus, Subjects(settings.pool), settings.name, engine)
    histories = Histories(log, record)
    rt.loop(record.checkpoint(), name="checkpoint")
    rt.loop(following.follow(), name="follow")
    rt.loop(Carrying(bus, settings.name, engine, kept.drop).run(), name="carrying")
    rt.loop(engine.run(), name="times")
    rt.loop(profiles.watch(settings.profiles_interval), name="profiles")
    authorizer = Authorizer.of_service("sessions", lambda: settings.authorization, people=people)

    def administers(caller: Identity) -> bool:
        return authorizer.decide(Level.ADMINISTRATOR, caller, None).allowed

    access = SessionAccess(engine, administers, people.groups)
    reasons = Reasons(bus, settings.name, settings.negotiator)
    certificates = Certificates(kept, access)
    asked = SessionCommands(
        engine, following, access, profiles, reasons, histories, kept, limit=settings.limit
    )
    members = MemberQuestions(engine, access, kept, certificates, bus, settings.name)
    pipeline = CommandPipeline(record)
    await bus.serve(
        "sessions",
        settings.name,
        [
            pipeline.command(commands.CREATE_SESSION, asked.create),
            pipeline.query(commands.LIST_INTERACTIVE, asked.list_sessions),
            pipeline.query(commands.SHOW_INTERACTIVE, asked.show),
            pipeline.command(commands.CHANGE_INTERACTIVE, asked.change),
            pipeline.command(commands.RESTART_INTERACTIVE, asked.restart),
            pipeline.command(commands.STOP_INTERACTIVE, asked.stop),
            pipeline.query(commands.FOLLOW_INTERACTIVE, asked.follow),
            pipeline.query(commands.LIST_PROFILES, asked.profiles),
            pipeline.query(commands.SIGN_CERTIFICATE, certificates.signed),
            pipeline.command(commands.REPORT_SCHEDULER, members.report),
            pipeline.command(commands.MEMBER_ASKS, members.asks),
            *task_queues(rt, settings, record, log, pipeline, administers),
        ],
        version=VERSION,
    )
    rt.telemetry.observe(metrics.INTERACTIVE_SESSIONS, lambda: counted(engine.living))
    rt.telemetry.observe(metrics.INTERACTIVE_WORKERS, lambda: counted_workers(engine.living))
    rt.ready()
    await rt.stopping.wait()
