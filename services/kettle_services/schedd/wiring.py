"""How the parts of a schedd hang together."""

import asyncio
from functools import partial
from typing import Any, Final

from kettle.bus.ports import Handler, RefusedError, Rep, Req, Served
from kettle.eventsourcing.log import Log, LogError
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.joining import join_bus, join_log
from kettle.runtime.owning import own
from kettle.storage import PgWorkingSet
from kettle_services.schedd.claim_secrets import ClaimSecrets
from kettle_services.schedd.claims.lifecycle import Claims
from kettle_services.schedd.commands.attempt_reports import Partners
from kettle_services.schedd.commands.factory_edits import Edits
from kettle_services.schedd.commands.job_access import Visitors
from kettle_services.schedd.commands.job_edits import JobEdits
from kettle_services.schedd.commands.pool_access import JobCommands
from kettle_services.schedd.commands.queries import Questions
from kettle_services.schedd.commands.queue_management import People
from kettle_services.schedd.commands.run_now import Swaps
from kettle_services.schedd.commands.spooling import Spooling
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.jobs.deferrals import Deferrals
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.jobs.local_universe import HomeJobs
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.negotiation.advertiser import Adverts
from kettle_services.schedd.negotiation.flocking import Flock
from kettle_services.schedd.queue.limits import Limits
from kettle_services.schedd.queue.recorder import Ledger, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import Shadows
from kettle_wire.commands import schedd as commands
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

VERSION: Final = "0.1.0"


async def serve(rt: Runtime, settings: ScheddSettings) -> None:
    """Own the shard, restore the queue, answer, until the process is asked to stop."""
    subjects = Subjects(settings.pool)
    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own(rt, settings, bus, log, f"schedd.{settings.name}")
    if shard is None:
        return
    queue = Queue(settings.name, significant=settings.significant_attributes)
    working_set = PgWorkingSet(log.database)
    checkpointer = await restore(log, working_set, shard, queue, interval=settings.checkpoint_interval)
    ledger = Ledger(shard, queue, checkpointer)
    fault_point("takeover.restored")
    rt.loop(checkpointer.run(), name="checkpoint")
    async with asyncio.TaskGroup() as tasks:
        secrets = ClaimSecrets.at(settings.key_path)
        shadows = Shadows(
            bus,
            queue,
            secrets,
            tasks,
            rt.telemetry,
            interval=settings.sync_interval,
            longest_delay=settings.max_next_job_start_delay,
        )
        flock = Flock(bus, queue, tasks, settings)
        claims = Claims(flock.ways, ledger, shadows, secrets, tasks, settings, flock.named)
        flock.use(claims)
        ledger.on_change(flock.note)
        adverts = Adverts(bus, subjects, queue, claims, settings, flock.ad)
        ledger.on_change(adverts.note)
        flock.on_change(adverts.urge)
        home_jobs = HomeJobs(queue, claims, settings)
        ledger.on_change(home_jobs.note)
        claims.on_refused(adverts.urge)
        ledger.on_cooled(adverts.urge)
        ledger.on_cooled(home_jobs.urge)
        for job in queue.cooling:
            ledger.cool(job)
        claims.settle_idle()
        policies = Policies(ledger, shadows, settings)

        def offered() -> None:
            adverts.urge()
            home_jobs.urge()

        factories = Factories(ledger, settings)
        ledger.on_change(factories.note)
        deferrals = Deferrals(ledger, offered)
        ledger.on_change(deferrals.note)
        ledger.on_cooled(deferrals.wake)
        loops = [
            tasks.create_task(policies.run(), name="policies"),
            tasks.create_task(deferrals.run(), name="deferrals"),
            tasks.create_task(factories.run(), name="factories"),
            tasks.create_task(adverts.run(), name="adverts"),
            tasks.create_task(claims.keep_alive(), name="keep alive"),
            tasks.create_task(claims.idle.run(claims.look_at), name="idle claims"),
            tasks.create_task(home_jobs.run(), name="local jobs"),
            tasks.create_task(flock.run(), name="flocking"),
        ]
        _measure(rt, ledger)
        await bus.serve(
            "schedd",
            settings.name,
            _answers(log, ledger, claims, shadows, policies, home_jobs, factories, flock, settings),
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
        flock.close()
        shadows.close()


def _measure(rt: Runtime, ledger: Ledger) -> None:
    queue = ledger.queue

    def jobs(status: str) -> float:
        return float(sum(tally.get(status, 0) for tally in queue.tally.copy().values()))

    for status in ("idle", "running", "held"):
        rt.telemetry.gauge(
            f"kettle.schedd.jobs.{status}",
            partial(jobs, status),
            unit="{job}",
            description=f"Jobs that are {status}",
        )
    rt.telemetry.gauge(
        "kettle.schedd.claims", lambda: float(len(queue.claims)), unit="{claim}", description="Claims held"
    )
    rt.telemetry.gauge(
        "kettle.schedd.backlog",
        lambda: float(ledger.shard.backlog),
        unit="{event}",
        description="Events that are recorded and not yet committed",
    )


def _answers(
    log: Log,
    ledger: Ledger,
    claims: Claims,
    shadows: Shadows,
    policies: Policies,
    home_jobs: HomeJobs,
    factories: Factories,
    flock: Flock,
    settings: ScheddSettings,
) -> list[Served[Any, Any]]:
    limits = Limits(ledger.queue, settings)
    people = People(ledger, shadows, factories, limits, settings)
    questions = Questions(
        log, ledger, home_jobs, factories, limits, claims.refusals, flock.why, settings.queue_super_users
    )
    partners = Partners(ledger, claims, shadows, policies, settings)
    spooling = Spooling(ledger, shadows, settings)
    served: list[Served[Any, Any]] = [
        Served(commands.SUBMIT, _as_owner(people.submit)),
        Served(commands.ACT, _as_owner(people.act)),
        Served(commands.EDIT, _as_owner(Edits(ledger, settings).edit)),
        Served(commands.EDIT_JOBS, _as_owner(JobEdits(ledger, settings).edit)),
        Served(commands.RUN_NOW, _as_owner(Swaps(ledger, claims).run_now)),
        Served(commands.QUERY_JOBS, _as_owner(questions.query_jobs)),
        Served(commands.QUERY_EVENTS, _as_owner(questions.query_events)),
        Served(commands.EXPLAIN, _as_owner(questions.explain)),
        Served(commands.ACCESS, _as_owner(Visitors(ledger, shadows, settings).access)),
        Served(commands.FIND_SPOOL, _as_owner(spooling.find)),
        Served(commands.RELEASE_SPOOLED, _as_owner(spooling.release)),
        Served(commands.MATCHED, _as_owner(partners.matched)),
        Served(commands.SYNC, _as_owner(partners.sync)),
        Served(commands.REPORT, _as_owner(partners.report)),
    ]
    from_jobs = JobCommands(ledger, settings, served)
    return [*served, Served(commands.JOB_COMMAND, from_jobs.command)]


def _as_owner(answer: Handler[Req, Rep]) -> Handler[Req, Rep]:
    """
    Whoever asks a schedd that has just lost its queue asks the next one: the command's id makes a repeat harmless.
    """

    async def answered(request: Req, caller: Identity) -> Rep:
        try:
            return await answer(request, caller)
        except LogError as error:
            raise RefusedError(
                "unavailable", f"this schedd does not own its queue any more: {error}"
            ) from error

    return answered
