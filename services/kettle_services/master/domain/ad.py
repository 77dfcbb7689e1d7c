"""The master's ad: what there is of a host's daemons, in HTCondor's words where it has them."""

from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.pool.daemon_states import DaemonState
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import prefix_of

MASTER: Final = "DaemonMaster"


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of the master itself."""

    name: str
    machine: str
    started: float
    pid: int
    uid: int
    version: str
    installed: str
    """The version that is installed now."""
    waiting: bool = False
    """Whether what is installed waits to take the place of what runs; its version may be the same."""
    tuning: str = ""
    """How the tuning script ended; empty: there is none."""
    facts: Ad = {}
    """What every daemon says of itself."""
    reconfigured: float = 0.0
    """When the settings were last read again."""


def master_ad(host: Host, daemons: Sequence[DaemonState], *, now: float) -> Ad:
    """The whole ad; `daemons` in the order in which they are shown."""
    ad: Ad = {
        **host.facts,
        "MyType": MASTER,
        "Name": host.name,
        "Machine": host.machine,
        "DaemonStartTime": int(host.started),
        "MASTER_StartTime": int(host.started),
        "MasterPid": host.pid,
        "RealUid": host.uid,
        "KettleVersion": host.version,
        "MyCurrentTime": int(now),
        "DaemonList": ", ".join(["MASTER", *(daemon.name for daemon in daemons)]),
        "NumDaemonsRunning": sum(daemon.status in {"running", "standby"} for daemon in daemons),
        "NumDaemonsOff": sum(daemon.status == "off" for daemon in daemons),
    }
    if host.waiting:
        ad["NewVersion"] = host.installed
    if host.tuning:
        ad["LinuxKernelTuning"] = host.tuning
    if host.reconfigured:
        ad["DaemonLastReconfigTime"] = int(host.reconfigured)
    for daemon in daemons:
        ad.update(_of(daemon))
    return ad


def _of(daemon: DaemonState) -> Ad:
    prefix = prefix_of(daemon.name)
    ad: Ad = {
        f"{prefix}_State": daemon.status.capitalize(),
        f"{prefix}_Restarts": max(0, daemon.starts - 1),
        f"{prefix}_Hangs": daemon.hangs,
    }
    if daemon.pid:
        ad[f"{prefix}_Pid"] = daemon.pid
        ad[f"{prefix}_StartTime"] = int(daemon.since)
    elif daemon.since:
        ad[f"{prefix}_EndTime"] = int(daemon.since)
    if daemon.last_exit:
        ad[f"{prefix}_LastExit"] = daemon.last_exit
    return ad
