"""How the parts of a schedd hang together."""

import asyncio
import time
from functools import partial
from typing import Any

from kettle import VERSION
from kettle.accounts.lookup import Accounts
from kettle.bus.ports import Auditor, Served
from kettle.eventsourcing.command_pipeline import Alike, CommandPipeline
from kettle.eventsourcing.log import Log
from kettle.faults import fault_point
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Runtime
from kettle.runtime.authorizer import Authorizer
from kettle.runtime.people import People
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.gangs import GangClaims
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.attempt_reports import AttemptReports
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.entrypoint_door import EntrypointDoor
from kettle_services.schedd.commands.explanations import Explanations
from kettle_services.schedd.commands.factory_edits import FactoryEdits
from kettle_services.schedd.commands.job_access import AccessCommands
from kettle_services.schedd.commands.job_actions import JobActions
from kettle_services.schedd.commands.job_edits import JobEdits
from kettle_services.schedd.commands.member_jobs import MemberJobs
from kettle_services.schedd.commands.needed_tokens import NeededTokens
from kettle_services.schedd.commands.outputs import OutputCommands
from kettle_services.schedd.commands.pool_access import JobCommands
from kettle_services.schedd.commands.queries import Queries
from kettle_services.schedd.commands.routing import RoutingCommands
from kettle_services.schedd.commands.run_now import REMEMBERED_S, RunNowCommands
from kettle_services.schedd.commands.service_reports import ServiceReports
from kettle_services.schedd.commands.spooling import SpoolCommands
from kettle_services.schedd.commands.submissions import Submissions, outcomes
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.batch_universe import BatchUniverse
from kettle_services.schedd.jobs.deferrals import Deferrals
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.jobs.local_universe import LocalUniverse
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.negotiation.advertiser import ScheddAdvertiser
from kettle_services.schedd.negotiation.flocking import Flock
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.queue_metrics import measure_queue
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.queue.sealing_key import seal_of
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.commands import member_jobs
from kettle_wire.commands import schedd as commands
from kettle_wire.commands.outputs import FIND_OUTPUTS
from kettle_wire.commands.queue import SUBMIT_FROM_JOB, Submitted
from kettle_wire.commands.routing import LIST_UNROUTED, ROUTE_JOBS
from kettle_wire.commands.service_reports import REPORT_SERVICES
from kettle_wire.commands.submissions import SUBMIT_MANY, SUBMIT_MANY_FROM_JOB, SubmitAlike, SubmitMany
from kettle_wire.subjects import Subjects


async def serve(rt: Runtime, settings: ScheddSettings) -> None:
    """Own the shard, restore the queue, answer, until the process is asked to stop."""
    subjects = Subjects(settings.pool)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings, people=(people := People()))
    shard = await own_shard(rt, settings, bus, log, f"schedd.{settings.name}")
    if shard is None:
        return
    queue = Queue(settings.name, significant=settings.significant_attributes)
    working_set = PgWorkingSet(log.database)
    checkpointer = await restore(log, working_set, shard, queue, interval=settings.checkpoint_interval)
    recorder = QueueRecorder(shard, queue, checkpointer)
    fault_point("takeover.restored")
    rt.loop(checkpointer.run(), name="checkpoint")
    async with asyncio.TaskGroup() as tasks:
        secrets, seal = (
            ClaimSecrets.at(settings.key_path),
            seal_of(settings.seal_path, now=time.time(), lifetime=settings.seal_lifetime),
        )
        shadows = ShadowDispatch(
            bus,
            queue,
            secrets,
            seal,
            tasks,
            rt.telemetry,
            interval=settings.sync_interval,
            longest_delay=settings.max_next_job_start_delay,
        )
        flock = Flock(bus, queue, tasks, settings)
        claims = ClaimLifecycle(flock.ways, recorder, shadows, secrets, tasks, settings, flock.named)
        flock.use(claims)
        recorder.on_change(flock.on_event)
        gangs = GangClaims(recorder, claims, shadows, tasks, settings)
        adverts = ScheddAdvertiser(
            bus, subjects, queue, claims, settings, flock.ad, joined=bool(bus.identity.access_point)
        )
        recorder.on_change(adverts.on_event)
        flock.on_change(adverts.wake)
        home_jobs, batch_jobs = _without_match(recorder, claims, settings)
        claims.on_refused(adverts.wake)
        recorder.on_cooldown_over(adverts.wake)
        for job in queue.waiting.cooling:
            recorder.start_cooldown(job)
        claims.reuse_or_end_idle()
        policies = Policies(recorder, shadows, settings)

        def offered() -> None:
            adverts.wake()
            home_jobs.wake()
            batch_jobs.wake()

        factories = Factories(recorder, settings)
        recorder.on_change(factories.on_event)
        deferrals = Deferrals(recorder, offered)
        recorder.on_change(deferrals.on_event)
        recorder.on_cooldown_over(deferrals.wake)
        loops = [
            tasks.create_task(policies.evaluate_forever(), name="policies"),
            tasks.create_task(deferrals.watch_times(), name="deferrals"),
            tasks.create_task(factories.materialize_jobs(), name="factories"),
            tasks.create_task(adverts.publish_ads(), name="adverts"),
            tasks.create_task(claims.renew_leases(), name="keep alive"),
            tasks.create_task(claims.idle.watch_claims(claims.reuse_idle), name="idle claims"),
            tasks.create_task(home_jobs.start_jobs(), name="local jobs"),
            tasks.create_task(flock.watch_demand(), name="flocking"),
            tasks.create_task(batch_jobs.start_jobs(), name="batch jobs"),
        ]
        measure_queue(rt.telemetry, recorder, owners=settings.telemetry.owners)
        await bus.serve(
            "schedd",
            settings.name,
            _answers(
                log,
                recorder,
                claims,
                gangs,
                shadows,
                policies,
                home_jobs,
                batch_jobs,
                factories,
                flock,
                seal,
                settings,
                bus.auditor,
                people,
            ),
            version=VERSION,
        )
        await bus.publish(subjects.notice("schedd", settings.name), b"")
        rt.ready()
        fault_point("takeover.serving")
        await rt.stopping.wait()
        for loop in loops:
            loop.cancel()
        await asyncio.wait(loops)
        await adverts.withdraw()
        for part in (flock, gangs, shadows):
            part.close()


def _answers(
    log: Log,
    recorder: QueueRecorder,
    claims: ClaimLifecycle,
    gangs: GangClaims,
    shadows: ShadowDispatch,
    policies: Policies,
    home_jobs: LocalUniverse,
    batch_jobs: BatchUniverse,
    factories: Factories,
    flock: Flock,
    seal: AttributeSeal,
    settings: ScheddSettings,
    auditor: Auditor | None,
    people: People,
) -> list[Served[Any, Any]]:
    deeds = DeedsForOthers(recorder.queue, auditor)
    limits = QueueLimits(recorder.queue, settings)
    backlog = Backlog(recorder.shard, limit=settings.max_backlog)
    door = EntrypointDoor(recorder.queue, settings.vos, people.shown) if settings.entrypoint else None
    submissions = Submissions(
        recorder, limits, backlog, settings, Accounts(), seal, people.accounting_group, door
    )
    questions = Queries(log, recorder, factories, seal, settings.queue_super_users)
    reasons = Explanations(
        recorder,
        home_jobs,
        factories,
        limits,
        claims.refusals,
        settings,
        seal,
        flock.explain,
        batch_jobs.explain,
    )
    attempt_reports = AttemptReports(recorder, claims, gangs, shadows, policies, settings)
    spooling = SpoolCommands(recorder, shadows, settings)
    actions = JobActions(recorder, shadows, factories, settings, deeds)
    edits = JobEdits(recorder, settings, deeds, seal)
    pipeline = CommandPipeline(recorder, require_room=backlog.require_room)
    command, query = pipeline.command, pipeline.query
    served: list[Served[Any, Any]] = [
        command(commands.SUBMIT, submissions.submit),
        pipeline.many(
            SUBMIT_MANY,
            commands.SUBMIT,
            submissions.submit,
            parts=lambda request: request.submissions,
            answer=outcomes,
            alike=_alike(recorder, submissions, by_job=False),
        ),
        command(SUBMIT_FROM_JOB, submissions.submit_from_job),
        pipeline.many(
            SUBMIT_MANY_FROM_JOB,
            SUBMIT_FROM_JOB,
            submissions.submit_from_job,
            parts=lambda request: request.submissions,
            answer=outcomes,
            alike=_alike(recorder, submissions, by_job=True),
        ),
        query(commands.ASK_ROOM, submissions.ask_room),
        command(commands.ACT, actions.act),
        command(commands.EDIT, FactoryEdits(recorder, settings, deeds).edit),
        command(commands.EDIT_JOBS, edits.edit),
        command(commands.RUN_NOW, RunNowCommands(recorder, claims).run_now, remember=REMEMBERED_S),
        query(commands.QUERY_JOBS, questions.query_jobs),
        query(commands.QUERY_EVENTS, questions.query_events),
        query(commands.OPEN_SEALED, questions.open_sealed),
        query(commands.EXPLAIN, reasons.explain),
        query(commands.EXPLAIN_JOBS, reasons.explain_jobs),
        query(commands.ACCESS, AccessCommands(recorder, shadows, settings, auditor).access),
        query(commands.FIND_SPOOL, spooling.find),
        query(FIND_OUTPUTS, OutputCommands(recorder, shadows, questions, settings).find),
        command(commands.RELEASE_SPOOLED, spooling.release),
        command(commands.MATCHED, attempt_reports.accept_matches),
        command(commands.SYNC, attempt_reports.sync_shadow),
        command(commands.REPORT, attempt_reports.record_reports),
        *(_routing(pipeline, recorder, seal, door, settings) if door is not None else []),
        command(REPORT_SERVICES, ServiceReports(recorder, auditor).report),
        *_of_sessions(pipeline, recorder, submissions, actions, edits, reasons),
        query(commands.NEEDED_TOKENS, NeededTokens(recorder).needed_tokens),
    ]
    authorizer = Authorizer.of_service("schedd", lambda: settings.authorization, people=people)
    for_jobs = [
        *served,
        command(commands.SUBMIT, submissions.submit_from_job),
        command(commands.EDIT_JOBS, edits.edit_from_job),
    ]
    from_jobs = JobCommands(recorder, settings, for_jobs, authorizer)
    return [*served, Served(commands.JOB_COMMAND, from_jobs.command)]


def _alike(
    recorder: QueueRecorder, submissions: Submissions, *, by_job: bool
) -> Alike[SubmitMany, SubmitAlike, Submitted]:
    """How submissions are decided that have most in common."""
    return Alike(
        parts=lambda request: request.alike,
        decide=partial(submissions.submit_alike, by_job=by_job),
        record=recorder.record_together,
    )


def _without_match(
    recorder: QueueRecorder, claims: ClaimLifecycle, settings: ScheddSettings
) -> tuple[LocalUniverse, BatchUniverse]:
    """What starts jobs that need no match: here, and in the batch systems of a compute entrypoint."""
    home_jobs = LocalUniverse(recorder.queue, claims, settings)
    batch_jobs = BatchUniverse(recorder.queue, claims, settings)
    for starts in (home_jobs, batch_jobs) if settings.entrypoint else (home_jobs,):
        recorder.on_change(starts.on_event)
        recorder.on_cooldown_over(starts.wake)
    return home_jobs, batch_jobs


def _of_sessions(
    pipeline: CommandPipeline,
    recorder: QueueRecorder,
    submissions: Submissions,
    actions: JobActions,
    edits: JobEdits,
    reasons: Explanations,
) -> list[Served[Any, Any]]:
    """For the service of interactive sessions."""
    members = MemberJobs(recorder, submissions.submit_members, actions.act, edits.edit, reasons)
    return [
        pipeline.command(member_jobs.SUBMIT_MEMBERS, members.submit),
        pipeline.command(member_jobs.ACT_ON_MEMBERS, members.act),
        pipeline.query(member_jobs.EXPLAIN_MEMBERS, members.explain),
    ]


def _routing(
    pipeline: CommandPipeline,
    recorder: QueueRecorder,
    seal: AttributeSeal,
    door: EntrypointDoor,
    settings: ScheddSettings,
) -> list[Served[Any, Any]]:
    """For a compute entrypoint."""
    routing = RoutingCommands(recorder, seal, door, settings.vos)
    return [
        pipeline.query(LIST_UNROUTED, routing.list_unrouted),
        pipeline.command(ROUTE_JOBS, routing.route_jobs),
    ]
