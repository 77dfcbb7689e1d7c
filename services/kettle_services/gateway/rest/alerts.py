"""What somebody should look at: what the site's Prometheus says, else what the gateway can tell itself."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import aiohttp
import asyncpg

from kettle.bus.ports import Bus, BusError
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.collector_ads import all_ads
from kettle_services.gateway.rest.failures import cause_of
from kettle_services.gateway.rest.hosts import host_of
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables
from kettle_services.gateway.rest.prometheus_alerts import PrometheusError, alerts_of
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.administration import Host
from kettle_wire.rest.alerts import Alert, Alerts

WELL: Final = frozenset({"Running", "Standby"})
"""States of daemons."""
MANY_HOLDS: Final = 100
"""Jobs that the system has held within an hour."""
LITTLE_DISK: Final = 2_000_000_000
"""Bytes that are left: with the same the rule of Prometheus fires."""
_RUNBOOK: Final = "docs/how-to/answer-alerts.md"
_SEVERITIES: Final = ("critical", "warning")
_LATELY: Final = timedelta(days=1)


class AlertQuestions:
    """Answers them."""

    def __init__(
        self,
        bus: Bus,
        collector: str,
        tables: JobTables,
        *,
        home: Path,
        prometheus: tuple[aiohttp.ClientSession, str] | None,
    ) -> None:
        """`home`: the pool's directory, whose disk is looked at; `prometheus`: how and where it is asked."""
        self._bus: Final = bus
        self._collector: Final = collector
        self._tables: Final = tables
        self._home: Final = home
        self._prometheus: Final = prometheus

    async def list(self, _asked: Asked) -> Answer:
        """All of them."""
        trouble = ""
        if self._prometheus is not None:
            try:
                return Answer(Alerts(source="prometheus", alerts=_sorted(await alerts_of(*self._prometheus))))
            except PrometheusError as error:
                trouble = str(error)
        found: list[Alert] = [*of_disk(self._home)]
        troubles = [trouble] if trouble else []
        try:
            ads = await all_ads(self._bus, self._collector, "DaemonMaster")
            found += of_hosts([host_of(ad) for ad in ads])
        except BusError as error:
            troubles.append(f"nobody knows which daemons run: {error}")
        try:
            found += await self._of_tables()
        except RequestRefused as refusal:
            troubles.append(str(refusal))
        return Answer(Alerts(source="gateway", alerts=_sorted(found), trouble="; ".join(troubles)))

    async def _of_tables(self) -> Sequence[Alert]:
        now = datetime.now(UTC)
        async with self._tables.read() as reading:
            lost = await reading.fetch(QUERIES["machines_lost"], now - _LATELY)
            held = await reading.fetch(QUERIES["held_by_system"], now - timedelta(hours=1), MANY_HOLDS)
        return [*of_machines(lost), *of_holds(held)]


def of_hosts(hosts: Sequence[Host]) -> Iterator[Alert]:
    """Daemons that do not run, or have hung."""
    for host in hosts:
        for daemon in host.daemons:
            labels = {"daemon": daemon.name, "instance": host.name}
            if daemon.state not in WELL:
                why = f": {daemon.last_exit}" if daemon.last_exit else ""
                yield _alert(
                    "KettleServiceDown",
                    f"{daemon.name} on {host.name} is {daemon.state.lower()}{why}",
                    daemon.since or host.heard,
                    labels,
                    severity="critical",
                )
            elif daemon.hangs:
                times = "once" if daemon.hangs == 1 else f"{daemon.hangs} times"
                yield _alert(
                    "KettleServiceHangs",
                    f"{daemon.name} on {host.name} hung {times}, and was started again",
                    daemon.since or host.heard,
                    labels,
                )


def of_machines(rows: Sequence[asyncpg.Record]) -> Iterator[Alert]:
    """Machines that were not drained and told nothing any more."""
    for row in rows:
        yield _alert(
            "KettleMachinesLost",
            f"{row['machine']} has told nothing of itself any more",
            row["since"],
            {"machine": row["machine"]},
        )


def of_holds(rows: Sequence[asyncpg.Record]) -> Iterator[Alert]:
    """Very many jobs that were held, and not by people."""
    for row in rows:
        yield _alert(
            "KettleManyHolds",
            f"{row['count']} jobs were held within an hour, the last because {cause_of(row['last_reason'] or 'no reason was given')}",
            row["first"],
            {},
        )


def of_disk(home: Path) -> Iterator[Alert]:
    """The file system of the pool's directory on the gateway's machine."""
    there = os.statvfs(home)
    left = there.f_bavail * there.f_frsize
    if left < LITTLE_DISK:
        yield _alert(
            "KettleDiskNearlyFull",
            f"the disk of the pool's directory on the gateway's machine has {left / 1e9:.1f} GB left",
            datetime.now(UTC),
            {},
            severity="critical",
        )


def _alert(
    name: str, summary: str, since: datetime, labels: dict[str, str], *, severity: str = "warning"
) -> Alert:
    return Alert(
        name=name,
        severity=severity,
        since=since,
        summary=summary,
        runbook=f"{_RUNBOOK}#{name.lower()}",
        labels=labels,
    )


def _sorted(alerts: Sequence[Alert]) -> list[Alert]:
    """The worst first; what does not fire yet comes last."""
    rank = {name: number for number, name in enumerate(_SEVERITIES)}
    return sorted(
        alerts,
        key=lambda one: (one.state != "firing", rank.get(one.severity, len(rank)), one.since, one.name),
    )
