"""The daemons of every host, as the ads of their masters tell."""

import time
from collections.abc import Sequence
from typing import Final

from kettle.terminal.quantities import run_time
from kettle_services.cli.output.ads_as_json import plain
from kettle_services.cli.output.screen import Cell, Screen
from kettle_services.cli.tables.jobs import number
from kettle_wire.ads import Ad
from kettle_wire.ads.daemon import prefix_of

_TITLES: Final = ("HOST", "DAEMON", "STATE", "PID", "FOR", "RESTARTS", "HANGS", "LAST EXIT")
_RIGHT: Final = frozenset({"PID", "FOR", "RESTARTS", "HANGS"})
_STYLES: Final = {"Running": "good", "Starting": "idle", "Stopping": "idle", "Waiting": "bad", "Off": "dim"}


def show_masters(ads: Sequence[Ad], screen: Screen) -> None:
    """A row for each master, and one for each daemon that it keeps."""
    if screen.as_json:
        screen.json([plain(ad) for ad in ads])
        return
    if not ads:
        screen.say("No master has told of itself.")
        return
    rows: list[Sequence[Cell]] = []
    styles: list[str] = []
    now = time.time()
    for ad in ads:
        rows.append(_master(ad, now))
        styles.append("strong")
        for daemon in str(ad.get("DaemonList", "")).split(", ")[1:]:
            state = str(ad.get(f"{prefix_of(daemon)}_State", "?"))
            rows.append(_daemon(ad, daemon, state, now))
            styles.append(_STYLES.get(state, ""))
    screen.table(_TITLES, rows, styles=styles, right=_RIGHT)
    for ad in ads:
        if "NewVersion" in ad:
            screen.note(
                f"{ad.get('Name')} runs Kettle {ad.get('KettleVersion')}; {ad.get('NewVersion')} is installed."
            )


def _master(ad: Ad, now: float) -> list[Cell]:
    since = number(ad, "DaemonStartTime")
    pid = int(number(ad, "MasterPid")) or "-"
    return [str(ad.get("Name", "?")), "master", "Running", pid, run_time(now - since), "", "", ""]


def _daemon(ad: Ad, daemon: str, state: str, now: float) -> list[Cell]:
    prefix = prefix_of(daemon)
    since = number(ad, f"{prefix}_StartTime") or number(ad, f"{prefix}_EndTime")
    return [
        "",
        daemon,
        state,
        int(number(ad, f"{prefix}_Pid")) or "-",
        run_time(now - since) if since else "-",
        int(number(ad, f"{prefix}_Restarts")),
        int(number(ad, f"{prefix}_Hangs")),
        str(ad.get(f"{prefix}_LastExit", "")),
    ]
