"""The whole examination: what is read, and what is said of it."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle.client import Client, ClientError, PoolFile
from kettle.eventsourcing.log import LogError
from kettle.pool import PoolError, state
from kettle.projections import Lag, lags
from kettle_services.cli.configuration.master_settings import master_settings
from kettle_services.cli.configuration.outcome import environ_of
from kettle_services.cli.doctor.findings import Finding, problem
from kettle_services.cli.doctor.host_checks import host_findings
from kettle_services.cli.doctor.host_facts import host_facts
from kettle_services.cli.doctor.pool_checks import pool_findings
from kettle_services.cli.doctor.pool_facts import pool_facts
from kettle_services.cli.doctor.server_checks import bus_findings, database_findings
from kettle_services.cli.doctor.server_facts import bus_facts, database_facts
from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import places
from kettle_services.cli.log.folds import WORKING_SETS
from kettle_wire.ads import Ad

_WITHIN_S: Final = 10.0


async def examine(home: Path) -> list[Finding]:
    """Everything about this host and its pool, the worst first."""
    found: list[Finding] = []
    try:
        minimum = master_settings(environ_of(home)).minimum_disk_mib
    except CommandError:
        minimum = 0  # the check of the configuration says what is wrong
    found += host_findings(await asyncio.to_thread(host_facts, home, minimum_disk_mib=minimum))
    try:
        running = state(home)
    except PoolError as error:
        running = None
        found.append(problem("daemons", str(home), str(error), "kettle down, then kettle up"))
    masters: Sequence[Ad] = ()
    told: Sequence[Lag] = ()
    if running is not None:
        pool = PoolFile.load(home)
        for each in await bus_facts(home, pool):
            found += bus_findings(each)
        if pool.database_url:
            found += database_findings(await database_facts(pool.database_url))
            told = await _lags(home, found)
        masters = await _masters(home, found)
    facts = await asyncio.to_thread(pool_facts, home, running, masters, told)
    found += pool_findings(facts, now=time.time())
    order = ("problem", "warning", "note", "good")
    return sorted(found, key=lambda each: order.index(each.grade))


async def _lags(home: Path, found: list[Finding]) -> list[Lag]:
    try:
        async with places(home, patience=_WITHIN_S) as known:
            told = await lags(known.logs[0].database, known.logs)
    except (CommandError, LogError) as error:
        found.append(problem("projections", "the database", str(error), "kettle log projections"))
        return []
    return [
        lag for lag in told if lag.projection != "working_set" or lag.shard.partition(".")[0] in WORKING_SETS
    ]


async def _masters(home: Path, found: list[Finding]) -> Sequence[Ad]:
    try:
        async with Client.connect(home=home, patience=_WITHIN_S) as client:
            return await client.ads("DaemonMaster")
    except ClientError as error:
        found.append(problem("daemons", "the pool", f"hosts cannot be asked for: {error}", "kettle status"))
        return []
