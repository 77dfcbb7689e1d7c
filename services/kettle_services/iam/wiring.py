"""How the parts of an iam hang together."""

import os
import pwd
import re
import time
from functools import partial
from pathlib import Path
from typing import Final

from kettle import VERSION
from kettle.auth.private_files import private_directory
from kettle.auth.trust.keys import KeyPair
from kettle.bus.credentials import Credential
from kettle.embedded.ports import kept_port
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.faults import fault_point
from kettle.runtime import Runtime
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.runtime.shard_ownership import own_shard
from kettle.storage import PgWorkingSet
from kettle_services.iam.admissions import Admissions, Pool
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.bus_credentials import NoSigningKey, ScopedSigningKey
from kettle_services.iam.commands.bans import BanCommands
from kettle_services.iam.commands.clients import ClientCommands
from kettle_services.iam.commands.machines import MachineCommands
from kettle_services.iam.commands.questions import Questions
from kettle_services.iam.commands.token_requests import TokenRequestCommands
from kettle_services.iam.commands.tokens import TokenCommands
from kettle_services.iam.domain.job_tokens import JobTokenRules
from kettle_services.iam.domain.state import SHARD
from kettle_services.iam.grants import Grants
from kettle_services.iam.host_names import HostNames
from kettle_services.iam.housekeeping import keep_house, record_settings
from kettle_services.iam.machine_owners import MachineOwners
from kettle_services.iam.pins import certificate, pin_of
from kettle_services.iam.pool_master import BusMaster, master_name
from kettle_services.iam.ports import BusCredentials
from kettle_services.iam.record import Record
from kettle_services.iam.reported_deeds import ReportedDeeds
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.token_requests import TokenRequests
from kettle_wire.subjects import untoken

_PASSWORD: Final = re.compile(r"(?<=://)[^/@,]*@")
"""What of an address of the bus is for this service alone."""


def administrators(settings: IamSettings) -> frozenset[str]:
    """Users who may command it: the account that could stop this process anyway, and the configured ones."""
    try:
        own = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return frozenset(settings.administrators)
    return frozenset({*settings.administrators, own})


def bus_credentials(settings: IamSettings) -> BusCredentials:
    """
    What mints the credentials of machines: the key that the settings name, or that of the pool's own server.
    """
    if settings.workers_signing_key:
        key = Path(settings.workers_signing_key)
        return ScopedSigningKey(settings.workers_account, key, partial(own_names, settings))
    trust = settings.home_path / "credentials" / "trust"
    own = trust / "sign-worker.nk"
    if not own.exists():
        return NoSigningKey()
    account = KeyPair((trust / "account-WORKERS.nk").read_text(encoding="ascii")).public
    return ScopedSigningKey(account, own, partial(own_names, settings), trust)


def own_names(settings: IamSettings) -> set[str]:
    """
    The names of the pool's own hosts: of their startds, and of the master, which a machine of the same name could
    play.
    """
    files = (settings.home_path / "credentials").glob("startd*.creds")
    startds = {untoken(Credential.read(path).name) for path in files}
    return startds | {master_name(settings), "schedd"}


def own_server(settings: IamSettings) -> bool:
    """Whether the bus is the pool's own server, whose members a master admits."""
    return (settings.home_path / "credentials" / "trust").exists()


async def serve(rt: Runtime, settings: IamSettings) -> None:
    """Own the shard, answer over bus and HTTP, until the process is asked to stop."""
    # The web server and cryptography take long to load, and belong to a process that has nothing to fork.
    from kettle.auth.tokens.issuing.signing_keys import KeyTimes
    from kettle.runtime.tls_listener import tls_context
    from kettle_services.iam.http.application import Surface, serving
    from kettle_services.iam.idtokens import IdTokens, pool_places
    from kettle_services.iam.job_tokens import JobTokenOffice
    from kettle_services.iam.people.local_accounts import tell_bans
    from kettle_services.iam.people.told import ToldPeople
    from kettle_services.iam.people.wiring import callout_keys, identification_of, let_people_in, policy_of
    from kettle_services.iam.sealed_files import SealedFiles
    from kettle_services.iam.stored_credentials import StoredCredentials
    from kettle_services.iam.token_keys import KeyFiles

    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    record = await Record.recall(log, PgWorkingSet(log.database), shard)
    fault_point("takeover.restored")
    overlap = int(settings.key_overlap)
    times = KeyTimes(life=int(settings.key_lifetime), lead=overlap, overlap=overlap)
    keys = KeyFiles(settings.directory, times, now=time.time())
    port = settings.http_port or kept_port(private_directory(settings.directory) / "port")
    authority = certificate(settings.ca_certificate)
    scheme = "https" if settings.certificate else "http"
    pool = Pool(
        name=settings.pool,
        url=settings.url.rstrip("/") or f"{scheme}://{settings.http_host}:{port}",
        bus_url=settings.bus_url or _PASSWORD.sub("", settings.nats_url),
        pin=pin_of(authority) if authority else keys.pin,
        bus_ca=certificate(settings.nats_ca),
    )
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
    admissions = Admissions(
        record,
        denials,
        machines,
        keys,
        pool,
        master,
        owners,
        hosts=HostNames(bus, settings.collector),
        lifetime=settings.worker_lifetime,
    )
    policy = policy_of(settings, partial(administrators, settings))
    identification = await identification_of(rt, settings, record, grants, policy, pool.url)
    rt.loop(record.checkpoint(), name="checkpoint")
    changed = await record_settings(record, settings, policy.files)
    told = ToldPeople(bus, bus.subjects)
    people = callout_keys(settings)
    if people is not None:
        await told.open()
        await let_people_in(
            rt, settings, people, identification, policy, record, denials, told, changed=changed
        )
    if own_server(settings):
        rt.loop(tell_bans(record, bus, master_name(settings)), name="bans")
    files = SealedFiles(settings.directory / "credentials", now=time.time())
    rt.loop(keep_house(record, keys, files, settings), name="housekeeping")
    rules = JobTokenRules(
        scopes=settings.job_token_scopes,
        audiences=settings.job_token_audiences or (pool.url,),
        lifetime=settings.job_token_lifetime,
    )
    stored = StoredCredentials(record, files, settings.oauth_services, lifetime=settings.job_token_lifetime)
    commanders = partial(administrators, settings)
    answering = (
        MachineCommands(record, pool, open_to_machines=machines.require_open, master=master),
        BanCommands(record),
        ClientCommands(record),
        TokenCommands(record, grants, pool, settings, administrators=commanders),
        Questions(record, administrators=commanders),
        TokenRequestCommands(requests),
        JobTokenOffice(record, keys, bus, rules, stored, issuer=pool.url),
        stored,
        ReportedDeeds(denials),
    )
    pipeline = CommandPipeline(record, administrators=commanders)
    served = [endpoint for each in answering for endpoint in each.served(pipeline)]
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
        authority=authority,
        identification=identification,
        sentinel=people.sentinel if people is not None else "",
    )
    context = None
    if settings.certificate:
        context = tls_context(rt, certificate=settings.certificate, key=settings.certificate_key)
    await rt.enter(serving(surface, port, context))
    rt.ready()
    await rt.stopping.wait()
