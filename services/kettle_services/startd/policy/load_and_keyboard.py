"""
How busy the machine is, and how long nobody has touched it: what the policies of desktops ask.

`LoadAvg` and `KeyboardIdle` are of the whole machine: they are not divided among slots.
"""

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from kettle.execution.system.linux import cpu_seconds, descendants_of, terminal_of
from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.policy_expressions import PolicyExpressions
from kettle_wire.ads import Ad

NEVER_USED: Final = 2**31 - 1
"""Seconds of idleness where there is nothing that anybody could touch."""
_TERMINALS: Final = ("pts/[0-9]*", "tty[0-9]*")
_MINUTE: Final = 60.0
_OURS: Final = "condorloadavg"


class Observer:
    """
    Looks at the machine again and again; of what its jobs do only if the policy asks for it, because that takes longer.
    """

    def __init__(
        self,
        policy: PolicyExpressions,
        *,
        console: Sequence[str],
        accounts: range = range(0),
        dev: Path = Path("/dev"),
        proc: Path = Path("/proc"),
    ) -> None:
        """
        `console`: patterns below `dev` of the devices that are the console; `accounts`: users that are slots.
        """
        self._accounts = accounts
        self._console = console
        self._dev = dev
        self._proc = proc
        self._asked = any(_OURS in text.lower() for text in policy.texts.values())
        self._used: dict[int, float] = {}
        self._before: float | None = None
        self._load = 0.0

    def observe(self, starters: Iterable[int], now: Now) -> Ad:
        """The machine now; `starters` are the processes below which all jobs are."""
        local = time.localtime(now.time)
        starters = list(starters)
        console = self._idle(self._console, now.time)
        ad: Ad = {
            "KeyboardIdle": min(console, self._idle(_TERMINALS, now.time, starters)),
            "ConsoleIdle": console,
            "ClockMin": local.tm_hour * 60 + local.tm_min,
            "ClockDay": (local.tm_wday + 1) % 7,
        }
        if (load := self._load_average()) is not None:
            ad["LoadAvg"] = ad["TotalLoadAvg"] = load
        if self._asked:
            ad["CondorLoadAvg"] = ad["TotalCondorLoadAvg"] = self._of_jobs(starters, now.clock)
        return ad

    def _load_average(self) -> float | None:
        try:
            return float((self._proc / "loadavg").read_text(encoding="ascii").split()[0])
        except (OSError, ValueError, IndexError):
            return None  # an expression that asks for it is undefined, and so not true

    def _idle(self, patterns: Iterable[str], now: float, starters: Iterable[int] = ()) -> int:
        """
        Seconds since the last use of any of some devices, but for the terminals of those who look into jobs from afar.
        """
        last: float | None = None
        of_jobs: set[int] | None = None
        for pattern in patterns:
            for path in self._dev.glob(pattern):
                try:
                    about = path.stat()
                except OSError:
                    continue  # somebody has just logged out
                if about.st_uid in self._accounts or (last is not None and about.st_atime <= last):
                    continue
                if of_jobs is None:
                    of_jobs = _terminals_below(starters)
                if about.st_rdev not in of_jobs:
                    last = about.st_atime
        return NEVER_USED if last is None else max(0, int(now - last))

    def _of_jobs(self, starters: Iterable[int], clock: float) -> float:
        """How many processors the jobs have kept busy, smoothed over a minute as the kernel's average is."""
        members = {pid for starter in starters if starter for pid in descendants_of(starter)}
        used = {pid: sum(cpu_seconds(pid)) for pid in members}
        if self._before is not None and clock > self._before:
            span = clock - self._before
            spent = sum(max(0.0, seconds - self._used.get(pid, 0.0)) for pid, seconds in used.items())
            share = min(1.0, span / _MINUTE)
            self._load += share * (min(spent / span, float(os.cpu_count() or 1)) - self._load)
        self._used, self._before = used, clock
        return round(self._load, 2)


def _terminals_below(starters: Iterable[int]) -> set[int]:
    """Numbers of the terminals at which processes of jobs are."""
    members = (pid for starter in starters if starter for pid in descendants_of(starter))
    return {number for pid in members if (number := terminal_of(pid))}
