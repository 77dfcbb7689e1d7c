"""How the parts of the REST interface hang together."""

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from kettle.auth.tokens.checking.issuers import Issuer, Issuers
from kettle.auth.tokens.keys.fetching import FetchLimits, HttpFetcher
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle.auth.tokens.verifier import Verifier
from kettle.bus.ports import Bus
from kettle.client.iam_http import trusting
from kettle.client.jobs.access import STDERR, STDOUT
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.runtime import Runtime, SettingsError
from kettle.runtime.authorizer import SettingPlaces
from kettle.runtime.people import People
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.runtime.settings import config_path
from kettle.storage import Database
from kettle.submit.known_attributes import KnownAttributes
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.administration import AdministrationQuestions
from kettle_services.gateway.rest.alerts import AlertQuestions
from kettle_services.gateway.rest.application import Handler, RequestLimits
from kettle_services.gateway.rest.attempts import AttemptQuestions
from kettle_services.gateway.rest.ce.wiring import entrypoint_handlers
from kettle_services.gateway.rest.claims import ClaimQuestions
from kettle_services.gateway.rest.connections import LastingConnections, OwnConnections, PersonConnections
from kettle_services.gateway.rest.credentials import CredentialQuestions
from kettle_services.gateway.rest.dag_jobs import DagJobs
from kettle_services.gateway.rest.event_feed import EventFeed
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_services.gateway.rest.failures import FailureQuestions
from kettle_services.gateway.rest.files import FileQuestions
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.hosts import HostQuestions
from kettle_services.gateway.rest.job_commands import JobCommands
from kettle_services.gateway.rest.job_sets import JobSetQuestions
from kettle_services.gateway.rest.job_tables import JobTables, session_settings
from kettle_services.gateway.rest.jobs import JobQuestions
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.log import LogQuestions
from kettle_services.gateway.rest.machine_orders import MachineOrders
from kettle_services.gateway.rest.machine_use import MachineUseQuestions
from kettle_services.gateway.rest.machine_what_if import MachineWhatIfQuestions
from kettle_services.gateway.rest.machines import MachineQuestions
from kettle_services.gateway.rest.negotiations import NegotiationQuestions
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.own_workers import OwnWorkerQuestions
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.persons import Persons, own_token
from kettle_services.gateway.rest.pool import PoolQuestions
from kettle_services.gateway.rest.sessions import session_handlers
from kettle_services.gateway.rest.simulation_jobs import SimulationTerms
from kettle_services.gateway.rest.simulations import Simulations
from kettle_services.gateway.rest.spooling import SpoolCommands
from kettle_services.gateway.rest.standings import StandingQuestions
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.rest.task_queues import task_queue_handlers
from kettle_services.gateway.rest.usage import UsageQuestions
from kettle_services.gateway.rest.worker_pools import WorkerPoolQuestions
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.making import NewWorkflows
from kettle_services.gateway.rest.workflows.rerunning import Reruns
from kettle_services.gateway.rest.workflows.views import WorkflowViews
from kettle_services.gateway.rest.workflows.wiring import workflow_handlers
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.rest import (
    administration,
    alerts,
    attempts,
    claims,
    credentials,
    failures,
    files,
    job_sets,
    jobs,
    log,
    machine_use,
    machine_what_if,
    machines,
    negotiations,
    own_workers,
    pool,
    simulations,
    spooling,
    standings,
    usage,
    worker_pools,
)
from kettle_wire.rest import past as of_past
from kettle_wire.rest import streams as events
from kettle_wire.rest.route import Route
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry.gateway_metrics import STREAM_DELAY

SOCKET: Final = "socket"
"""At which the own account asks, in the directory."""
_LOOK_S: Final = 1.0
"""Between looks at the files of rules."""

_log: Final = logging.getLogger(__name__)


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """What checks what issuers say."""

    fetcher: HttpFetcher
    keys: KeyCache
    verifier: Verifier


class RestParts(msgspec.Struct, frozen=True):
    """What answers requests, and what admits them."""

    handlers: Mapping[Route, Handler]
    persons: Persons
    people: LastingConnections
    past: PastQuestions
    limits: RequestLimits
    tables: JobTables
    trust: Trust | None
    """None: no issuer is trusted."""
    workflows: WorkflowAccess
    new_workflows: NewWorkflows
    reruns: Reruns
    hub: EventHub
    streams: Streams


async def rest_parts(rt: Runtime, settings: GatewaySettings, bus: Bus, said: People) -> RestParts:
    """
    All of it; what it needs is closed with the service. `said`: what iam says of people.

    Raises SettingsError: what the settings say of people cannot be used.
    """
    reading = Database.connect(
        settings.database_url,
        connections=settings.rest_connections,
        session=session_settings(settings.rest_time),
    )
    database = await rt.enter(reading)
    tables = JobTables(database, most_seconds=settings.rest_time)
    rt.readiness("tables", tables.ready)
    policy = access_policy(settings)
    rt.loop(_follow(policy), name="rules")
    iam = OwnIam(settings.home_path)
    accounts = LocalAccounts(settings.home_path)
    trust = await _trust(rt, settings)
    persons = Persons(
        policy, trust.verifier if trust else None, iam, accounts, own_token(directory(settings)), said
    )
    people = await rt.enter(OwnConnections.ready(settings.home_path, pool_domain=policy.domain))
    filters = Filters(KnownAttributes())
    seals = Path(settings.seal_directory) if settings.seal_directory else settings.home_path / "credentials"
    seal = AttributeSeal.of_directory(seals)
    past = PastQuestions(bus, people, tables, seal)
    freshness = Freshness(bus, settings.accounting, tables)
    asked = JobQuestions(tables, filters, freshness, past.as_of, seal)
    monitor = Subjects(settings.pool).monitor_stream
    streams = Streams(settings.rest_streams, settings.rest_streams_of_one)
    hub = EventHub(bus, monitor)
    rt.loop(hub.run(), name="events")
    delay = rt.telemetry.histogram(STREAM_DELAY).record
    feed = EventFeed(bus, monitor, people, past, hub, streams, delay=delay)
    rt.loop(feed.run(), name="changes")
    of_files = FileQuestions(people, past, streams)
    access_points = AccessPoints(bus, settings.collector)
    done = JobCommands(people, access_points, tables, filters)
    sent = SpoolCommands(people, access_points)
    about = PoolQuestions(bus, settings.collector, tables, filters)
    handlers: dict[Route, Handler] = {
        jobs.LIST_JOBS: asked.list,
        jobs.LIST_HISTORY: asked.list,
        jobs.GET_JOB: asked.get,
        jobs.SUBMIT_JOBS: done.submit,
        jobs.ACT_ON_JOBS: done.act,
        jobs.EDIT_JOB: done.edit,
        of_past.GET_HISTORY_OF_JOB: past.history,
        of_past.GET_TIMELINE: past.timeline,
        of_past.GET_TRANSFERS: past.transfers,
        of_past.GET_WHY: past.why,
        of_past.ASK_WHAT_IF: past.what_if,
        events.FOLLOW_EVENTS: feed.follow,
        events.FOLLOW_JOB: feed.follow_job,
        events.FOLLOW_CLUSTER: feed.follow_cluster,
        events.FOLLOW_CHANGES: feed.follow_changes,
        spooling.GIVE_INPUTS: sent.give,
        spooling.PUT_FILE: sent.put,
        files.LIST_FILES: of_files.list,
        files.GET_FILE: of_files.get,
        files.GET_STDOUT: of_files.stream(STDOUT),
        files.GET_STDERR: of_files.stream(STDERR),
        files.GET_TAIL: of_files.tail,
        files.GET_ARCHIVE: of_files.archive,
        pool.LIST_SLOTS: about.ads("Machine"),
        pool.LIST_MACHINES: about.ads("StartDaemon"),
        pool.LIST_SUBMITTERS: about.ads("Submitter"),
        pool.LIST_CLUSTERS: about.clusters,
        job_sets.LIST_JOBSETS: JobSetQuestions(tables, freshness).list,
        machine_what_if.ASK_MACHINE_WHAT_IF: MachineWhatIfQuestions(bus, settings.collector, tables).ask,
        machines.EMPTY_MACHINE: MachineOrders(bus, settings.collector, people).empty,
        alerts.LIST_ALERTS: (await _alerts(rt, settings, bus, tables)).list,
        **_of_administration(people),
        **_of_own_workers(people),
        **_of_credentials(people),
        **_of_worker_pools(people),
        **session_handlers(people, streams),
        **task_queue_handlers(people),
        **_of_simulations(people, access_points, streams, settings),
        **entrypoint_handlers(bus, settings.collector, people, access_points, hub),
        **_of_the_pool(bus, settings, tables, filters, freshness, seal),
    }
    workflows = WorkflowAccess(tables, WorkflowViews(bus), persons.may)
    dag_jobs = DagJobs(settings.home_path)
    new_workflows = NewWorkflows(people, dag_jobs)
    reruns = Reruns(people, access_points, workflows, dag_jobs)
    handlers |= workflow_handlers(
        workflows, new_workflows, reruns, bus, streams, people, access_points, asked, freshness
    )
    limits = RequestLimits(
        rate=settings.requests_per_second,
        burst=settings.request_burst,
        all_rate=settings.all_requests_per_second,
        all_burst=settings.all_request_burst,
        proxies=frozenset(settings.proxies),
    )
    return RestParts(
        handlers, persons, people, past, limits, tables, trust, workflows, new_workflows, reruns, hub, streams
    )


def _of_the_pool(
    bus: Bus,
    settings: GatewaySettings,
    tables: JobTables,
    filters: Filters,
    freshness: Freshness,
    seal: AttributeSeal,
) -> dict[Route, Handler]:
    """What is asked about the pool and its past."""
    standing = StandingQuestions(bus, settings.negotiator, settings.collector, tables)
    cycles = NegotiationQuestions(tables)
    use = MachineUseQuestions(bus, settings.collector, filters)
    return {
        administration.LIST_HOSTS: HostQuestions(bus, settings.collector, filters).list,
        attempts.LIST_ATTEMPTS: AttemptQuestions(tables).list,
        claims.LIST_CLAIMS: ClaimQuestions(tables).list,
        failures.LIST_FAILURES: FailureQuestions(tables).list,
        log.LIST_LOG: LogQuestions(tables, seal, most_seconds=settings.rest_time).list,
        machine_use.GET_MACHINE_MAP: use.map,
        machine_use.LIST_MACHINE_USE: use.list,
        machines.GET_MACHINE: MachineQuestions(bus, settings.collector, tables).get,
        negotiations.GET_NEGOTIATION: cycles.get,
        negotiations.LIST_NEGOTIATIONS: cycles.list,
        standings.GET_FAIRSHARE: standing.fairshare,
        standings.GET_FAIRSHARE_HISTORY: standing.history,
        standings.LIST_USERS: standing.users,
        usage.GET_USAGE: UsageQuestions(bus, settings.accounting, freshness).get,
    }


def _of_administration(people: PersonConnections) -> dict[Route, Handler]:
    """What administrators ask of iam."""
    asked = AdministrationQuestions(people)
    return {
        administration.CHANGE_BANS: asked.change_bans,
        administration.END_LOGIN: asked.end_session,
        administration.LIST_AUDIT: asked.audit,
        administration.LIST_BANS: asked.bans,
        administration.LIST_LOGINS: asked.sessions,
        administration.LIST_WORKERS: asked.workers,
    }


def _of_own_workers(people: PersonConnections) -> dict[Route, Handler]:
    """What people ask about machines of their own."""
    asked = OwnWorkerQuestions(people)
    return {
        own_workers.LIST_OWN_WORKERS: asked.list,
        own_workers.REMOVE_OWN_WORKER: asked.remove,
        own_workers.REVOKE_OWN_JOIN_TOKEN: asked.revoke,
    }


def _of_credentials(people: PersonConnections) -> dict[Route, Handler]:
    """What people store for their jobs."""
    asked = CredentialQuestions(people)
    return {
        credentials.LIST_CREDENTIALS: asked.list,
        credentials.REMOVE_CREDENTIAL: asked.remove,
        credentials.STORE_CREDENTIAL: asked.store,
    }


def _of_worker_pools(people: PersonConnections) -> dict[Route, Handler]:
    """What is asked of the scaler."""
    asked = WorkerPoolQuestions(people)
    return {
        worker_pools.APPLY_POOL: asked.apply,
        worker_pools.GET_CONSOLE: asked.console,
        worker_pools.GET_LEASE: asked.lease,
        worker_pools.GET_MACHINES_OVER_TIME: asked.over_time,
        worker_pools.GET_PLAN: asked.plan,
        worker_pools.GET_POOL: asked.get,
        worker_pools.GET_REPORT: asked.report,
        worker_pools.GET_TIMELINE: asked.timeline,
        worker_pools.GIVE_UP_LEASE: asked.give_up,
        worker_pools.LIST_LEASES: asked.leases,
        worker_pools.LIST_POOLS: asked.list,
        worker_pools.ORDER_LEASE: asked.order_lease,
        worker_pools.ORDER_POOL: asked.order,
    }


def _of_simulations(
    people: PersonConnections, access_points: AccessPoints, streams: Streams, settings: GatewaySettings
) -> dict[Route, Handler]:
    """What plays pools that nobody has."""
    terms = SimulationTerms(
        python=settings.simulation_python or sys.executable,
        of_one=settings.simulations_of_one,
        memory=settings.simulation_memory,
        seconds=round(settings.simulation_time),
        kept=round(settings.simulation_kept),
    )
    asked = Simulations(people, access_points, streams, terms)
    return {
        simulations.BEGIN_SIMULATION: asked.create,
        simulations.FOLLOW_SIMULATION: asked.follow,
        simulations.GET_SIMULATION: asked.get,
        simulations.LIST_SIMULATIONS: asked.list,
        simulations.REMOVE_SIMULATION: asked.remove,
    }


async def _alerts(rt: Runtime, settings: GatewaySettings, bus: Bus, tables: JobTables) -> AlertQuestions:
    url = settings.prometheus_url
    prometheus = (await rt.enter(aiohttp.ClientSession()), url) if url else None
    return AlertQuestions(bus, settings.collector, tables, home=settings.home_path, prometheus=prometheus)


def directory(settings: GatewaySettings) -> Path:
    """Where the gateway keeps its port, its private socket and its private token."""
    return settings.home_path / "gateway"


def access_policy(settings: GatewaySettings) -> PolicyInForce:
    """
    Who is who and who may do what, as the table `[authorization]` and its files say; raises SettingsError.
    """
    path = config_path(os.environ)
    return PolicyInForce("gateway", settings.authorization, path, places=SettingPlaces(path))


async def _follow(policy: PolicyInForce) -> None:
    """Read the files of rules again when they have changed; never returns."""
    while True:
        await asyncio.sleep(_LOOK_S)
        if await asyncio.to_thread(policy.changed):
            _log.info("other rules are in force")


async def _trust(rt: Runtime, settings: GatewaySettings) -> Trust | None:
    """What is believed of the issuers that the settings name; None: they name none. Raises SettingsError."""
    audiences = {url: tuple(names) for url, names in settings.issuers.items()}
    for each in settings.login:
        audiences[each.issuer] = (*audiences.get(each.issuer, ()), each.client)
    if not audiences:
        return None
    try:
        issuers = Issuers(Issuer(url=url, audiences=names) for url, names in audiences.items())
    except ValueError as error:
        raise SettingsError(f"issuers: {error}") from error
    try:
        tls = trusting(settings.issuers_ca)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"issuers_ca: {settings.issuers_ca} cannot be used: {error}") from error
    limits = FetchLimits(private_hosts=frozenset(settings.issuer_hosts), plain_loopback=True)
    fetcher = await rt.enter(HttpFetcher.open(limits, tls=tls))
    keys = KeyCache(fetcher)
    return Trust(fetcher=fetcher, keys=keys, verifier=Verifier(issuers, keys))
