"""What a master measures of its host and of what it runs."""

import os
from collections import Counter
from pathlib import Path

from kettle.runtime import Telemetry
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_wire.telemetry import pool_metrics as metrics


def measure_host(telemetry: Telemetry, daemons: DaemonList, home: Path) -> None:
    """Have services and the disk looked at whenever somebody asks."""

    def by_status() -> dict[tuple[str, ...], float]:
        return {
            (status,): number for status, number in Counter(e.status for e in daemons.state.daemons).items()
        }

    def free() -> float:
        found = os.statvfs(home)
        return float(found.f_bavail * found.f_frsize)

    telemetry.observe(metrics.DAEMONS, by_status)
    telemetry.observe(
        metrics.DAEMON_STARTS, lambda: {(each.name,): each.starts for each in daemons.state.daemons}
    )
    telemetry.observe(
        metrics.DAEMON_HANGS, lambda: {(each.name,): each.hangs for each in daemons.state.daemons}
    )
    telemetry.observe(metrics.DISK_FREE, free)
