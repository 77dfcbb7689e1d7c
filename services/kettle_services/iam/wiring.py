"""How the parts of an iam hang together."""

import logging
import os
import pwd
import re
import socket
import time
from functools import partial
from pathlib import Path
from typing import Final

from kettle import VERSION
from kettle.auth.private_files import private_directory
from kettle.auth.trust.keys import KeyPair
from kettle.bus.credentials import Credential
from kettle.bus.nats import NatsBus
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
from kettle_services.iam.commands import Handlers
from kettle_services.iam.domain.state import SHARD
from kettle_services.iam.grants import Grants
from kettle_services.iam.housekeeping import keep_house, record_settings
from kettle_services.iam.pins import certificate, pin_of
from kettle_services.iam.ports import BusCredentials
from kettle_services.iam.record import Record
from kettle_services.iam.reported_deeds import ReportedDeeds
from kettle_services.iam.settings import IamSettings
from kettle_wire.commands.deeds import REPORT_DEED
from kettle_wire.commands.master import REVOKE_MEMBERS, RevokeMembers
from kettle_wire.subjects import untoken

_log: Final = logging.getLogger(__name__)
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
    return ScopedSigningKey(account, own, partial(own_names, settings))


def own_names(settings: IamSettings) -> set[str]:
    """
    The names of the pool's own hosts: of their startds, and of the master, which a machine of the same name could
    play.
    """
    files = (settings.home_path / "credentials").glob("startd*.creds")
    startds = {untoken(Credential.read(path).name) for path in files}
    return startds | {settings.bus_master or socket.gethostname()}


async def cut_off(bus: NatsBus, settings: IamSettings, key: str) -> None:
    """Have the pool's own server believe nothing more of a machine's key.  Raises BusError."""
    if settings.workers_signing_key:
        _log.warning(
            "the operator of the bus has to revoke a key: its server is not ours", extra={"key": key}
        )
        return
    master = settings.bus_master or socket.gethostname()
    await bus.call(REVOKE_MEMBERS, master, RevokeMembers(kind="worker", keys=[key]))


async def serve(rt: Runtime, settings: IamSettings) -> None:
    """Own the shard, answer over bus and HTTP, until the process is asked to stop."""
    # The web server and cryptography take long to load, and belong to a process that has nothing to fork.
    from kettle.runtime.tls_listener import tls_context
    from kettle_services.iam.http.application import Surface, serving
    from kettle_services.iam.token_keys import KeyFile

    log = await join_log(rt, settings)
    bus = await join_bus(rt, settings)
    shard = await own_shard(rt, settings, bus, log, SHARD)
    if shard is None:
        return
    record = await Record.recall(log, PgWorkingSet(log.database), shard)
    fault_point("takeover.restored")
    keys = KeyFile(
        settings.directory,
        lifetime=settings.key_lifetime,
        overlap=settings.key_overlap,
        now=time.time(),
    )
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
    denials = DenialRecord(record, rt.telemetry)
    grants = Grants(record, keys, issuer=pool.url, lifetime=settings.access_token_lifetime)
    handlers = Handlers(
        record,
        grants,
        pool,
        settings,
        administrators=partial(administrators, settings),
        open_to_machines=machines.require_open,
        cut_off=partial(cut_off, bus, settings),
    )
    admissions = Admissions(record, denials, machines, keys, pool, lifetime=settings.worker_lifetime)
    rt.loop(record.checkpoint(), name="checkpoint")
    await record_settings(record, settings)
    rt.loop(keep_house(record, keys, settings), name="housekeeping")
    deeds = CommandPipeline(record).command(REPORT_DEED, ReportedDeeds(denials).report)
    await bus.serve("iam", settings.name, [*handlers.served(), deeds], version=VERSION)
    surface = Surface(
        record=record,
        grants=grants,
        admissions=admissions,
        denials=denials,
        keys=keys,
        pool=pool,
        settings=settings,
        authority=authority,
    )
    context = None
    if settings.certificate:
        context = tls_context(rt, certificate=settings.certificate, key=settings.certificate_key)
    await rt.enter(serving(surface, port, context))
    rt.ready()
    await rt.stopping.wait()
