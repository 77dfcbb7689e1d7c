"""
The parts of an iam that owns its shard, put together: commands over the bus, people who come with a token, and HTTP.
"""

import time
from functools import partial
from typing import Any

from kettle import VERSION
from kettle.auth.private_files import private_directory
from kettle.auth.tokens.issuing.signing_keys import KeyTimes
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Served
from kettle.embedded.ports import kept_port
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.runtime import Runtime
from kettle.runtime.http_server import serving
from kettle.runtime.tls_listener import tls_context
from kettle_services.iam.admissions import Admissions, Pool
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.commands.bans import BanCommands
from kettle_services.iam.commands.clients import ClientCommands
from kettle_services.iam.commands.key_values import KeyValueCommands
from kettle_services.iam.commands.machines import MachineCommands
from kettle_services.iam.commands.own_machines import OwnMachineCommands
from kettle_services.iam.commands.questions import Questions
from kettle_services.iam.commands.token_requests import TokenRequestCommands
from kettle_services.iam.commands.tokens import TokenCommands
from kettle_services.iam.domain.job_tokens import JobTokenRules
from kettle_services.iam.domain.join_tokens import Lives
from kettle_services.iam.grants import Grants
from kettle_services.iam.host_names import HostNames
from kettle_services.iam.housekeeping import keep_house, record_settings
from kettle_services.iam.http.application import Surface, application
from kettle_services.iam.http.requests import LARGEST
from kettle_services.iam.idtokens import IdTokens, pool_places
from kettle_services.iam.job_tokens import JobTokenOffice
from kettle_services.iam.machine_owners import MachineOwners
from kettle_services.iam.machine_removal import MachineRemoval
from kettle_services.iam.own_pool import administrators, bus_credentials, own_server, pool_of
from kettle_services.iam.people.heard_questions import HeardQuestions, callout_keys
from kettle_services.iam.people.local_accounts import SaidBans, tell_bans
from kettle_services.iam.people.told import ToldPeople
from kettle_services.iam.people.wiring import identification_of, let_people_in, policy_of
from kettle_services.iam.pins import certificate
from kettle_services.iam.pool_master import BusMaster, master_name
from kettle_services.iam.record import Record
from kettle_services.iam.reported_deeds import ReportedDeeds
from kettle_services.iam.sealed_files import SealedFiles
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.stored_credentials import StoredCredentials
from kettle_services.iam.token_keys import KeyFiles
from kettle_services.iam.token_requests import TokenRequests


async def work(
    rt: Runtime, settings: IamSettings, bus: NatsBus, record: Record, heard: HeardQuestions | None
) -> None:
    """
    Answer over bus and HTTP, until the process is asked to stop; `heard`: what the bus asks about people meanwhile.
    """
    overlap = int(settings.key_overlap)
    times = KeyTimes(life=int(settings.key_lifetime), lead=overlap, overlap=overlap)
    keys = KeyFiles(settings.directory, times, now=time.time())
    port = settings.http_port or kept_port(private_directory(settings.directory) / "port")
    pool = pool_of(settings, keys, port)
    machines = bus_credentials(settings)
    master = BusMaster(bus, settings)
    denials = DenialRecord(record, rt.telemetry)
    grants = Grants(record, keys, issuer=pool.url, lifetime=settings.access_token_lifetime)
    requests = TokenRequests(
        record,
        IdTokens(pool_places(settings), longest=settings.idtoken_lifetime),
        domain=settings.authorization.own_domain,
        enabled=settings.token_requests,
        waits=settings.token_request_wait,
    )
    owners = MachineOwners(bus, bus.subjects, record)
    await owners.tell()
    rt.loop(owners.keep(), name="owners of machines")
    lives = Lives(pool=settings.worker_lifetime, own=settings.own_worker_lifetime)
    removal = MachineRemoval(record, master)
    admissions = Admissions(
        record,
        denials,
        machines,
        keys,
        pool,
        master,
        owners,
        hosts=HostNames(bus, settings.collector, has_shard=record.has_shard),
        lives=lives,
    )
    policy = policy_of(settings, partial(administrators, settings))
    identification = await identification_of(rt, settings, record, grants, policy, pool.url)
    rt.loop(record.checkpoint(), name="checkpoint")
    changed = await record_settings(record, settings, policy.files)
    told = ToldPeople(bus, bus.subjects)
    people, said = callout_keys(settings), None
    if people is not None and heard is not None:
        await told.open()
        await let_people_in(
            rt, settings, heard, people, identification, policy, record, denials, told, changed=changed
        )
        said = SaidBans(record, bus, told)
        rt.loop(said.keep(), name="bans for services")
    if own_server(settings):
        rt.loop(tell_bans(record, bus, master_name(settings)), name="bans")
    files = SealedFiles(settings.directory / "credentials", now=time.time())
    rt.loop(removal.keep(), name="machines of people")
    rt.loop(keep_house(record, keys, files, settings, master), name="housekeeping")
    commanders = partial(administrators, settings)
    pipeline = CommandPipeline(record, administrators=commanders)
    answering = (
        MachineCommands(
            record,
            pool,
            open_to_machines=machines.require_open,
            removal=removal,
        ),
        OwnMachineCommands(
            record, pool, machines, removal, identification, lives=lives, most=settings.machines_per_person
        ),
        BanCommands(record, said),
        ClientCommands(record),
        TokenCommands(record, grants, pool, settings, administrators=commanders),
        Questions(record, administrators=commanders),
        TokenRequestCommands(requests),
        KeyValueCommands(record),
        ReportedDeeds(denials),
    )
    served = [endpoint for each in answering for endpoint in each.served(pipeline)]
    served += _for_jobs(settings, bus, record, keys, files, pool, pipeline)
    await bus.serve("iam", settings.name, served, version=VERSION)
    surface = Surface(
        record=record,
        grants=grants,
        requests=requests,
        admissions=admissions,
        denials=denials,
        keys=keys,
        pool=pool,
        settings=settings,
        authority=certificate(settings.ca_certificate),
        identification=identification,
        sentinel=people.sentinel if people is not None else "",
    )
    context = None
    if settings.certificate:
        context = tls_context(rt, certificate=settings.certificate, key=settings.certificate_key)
    await rt.enter(serving(application(surface), settings.http_host, port, context, max_field_size=LARGEST))
    rt.ready()
    await rt.stopping.wait()


def _for_jobs(
    settings: IamSettings,
    bus: NatsBus,
    record: Record,
    keys: KeyFiles,
    files: SealedFiles,
    pool: Pool,
    pipeline: CommandPipeline,
) -> list[Served[Any, Any]]:
    """What is answered about tokens of jobs, and about credentials that are kept for them."""
    rules = JobTokenRules(
        scopes=settings.job_token_scopes,
        audiences=settings.job_token_audiences or (pool.url,),
        lifetime=settings.job_token_lifetime,
    )
    stored = StoredCredentials(record, files, settings.oauth_services, lifetime=settings.job_token_lifetime)
    office = JobTokenOffice(record, keys, bus, rules, stored, issuer=pool.url)
    return [*office.served(pipeline), *stored.served(pipeline)]
