"""condor_router_q: jobs that have a route, route by route."""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.jobs import checked
from kettle_services.condor.commands import q
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import WordsError
from kettle_wire.codes import JobStatus
from kettle_wire.commands.queue import Select

if TYPE_CHECKING:
    from kettle_wire.ads.types import Ad

_HELP: Final = """\
usage: {name} [options] [condor_q options]

The jobs of an access point that a route of its compute entrypoint has taken, everybody's.

  -S                     how many there are on each route, by their states
  -R, -I, -H             the same, of those that run, wait, or are held
  -route NAME            only those on this route
  -idle, -held           only these
  -constraint EXPRESSION only those for whose ads it is true

All else that condor_q takes may be said, too.
"""
HELP: Final = {name: _HELP.format(name=name) for name in ("condor_router_q", "condor_ce_router_q")}
_SUMMARIES: Final = {"-S": None, "-R": JobStatus.RUNNING, "-I": JobStatus.IDLE, "-H": JobStatus.HELD}
"""The option, with the only status that it counts."""
_CONDITIONS: Final = {
    "-idle": f"JobStatus == {JobStatus.IDLE:d}",
    "-held": f"JobStatus == {JobStatus.HELD:d}",
}
_LETTERS: Final = {
    JobStatus.IDLE: "I",
    JobStatus.RUNNING: "R",
    JobStatus.REMOVED: "X",
    JobStatus.COMPLETED: "C",
    JobStatus.HELD: "H",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    conditions: list[str] = []
    summary: str = ""
    passed: list[str] = []
    """For condor_q."""


def run(_name: str, words: list[str]) -> int:
    """Show them."""
    wanted = _wanted(words)
    constraint = " && ".join(f"({each})" for each in ("RouteName isnt undefined", *wanted.conditions))
    if not wanted.summary:
        return q.run("condor_q", ["-allusers", "-constraint", constraint, *wanted.passed])
    places = dict(zip(wanted.passed[::2], wanted.passed[1::2], strict=False))
    client = client_of(CondorConfig(os.environ), pool=places.get("-pool", ""), name=places.get("-name", ""))
    select = Select(constraint=checked(constraint))
    ads = client.run(lambda pool: pool.jobs(select, projection=["RouteName", "JobStatus", "GridResource"]))
    sys.stdout.writelines(summed(ads, _SUMMARIES[wanted.summary]))
    return 0


def _wanted(words: list[str]) -> _Wanted:
    wanted = _Wanted()
    rest = iter(words)
    for word in rest:
        if word in _SUMMARIES:
            wanted.summary = word
        elif word in _CONDITIONS:
            wanted.conditions.append(_CONDITIONS[word])
        elif word in {"-route", "-constraint"}:
            value = next(rest, None)
            if value is None:
                raise WordsError(f"Argument {word} requires another parameter")
            wanted.conditions.append(value if word == "-constraint" else f'RouteName == "{value}"')
        else:
            wanted.passed.append(word)
    return wanted


def summed(ads: "Iterable[Ad]", only: JobStatus | None) -> list[str]:
    """A line for each route and status."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for ad in ads:
        status = ad.get("JobStatus")
        if only is None or status == only:
            letter = _LETTERS.get(JobStatus(status), "?") if isinstance(status, int) else "?"
            counts[str(ad.get("RouteName", "")), letter, str(ad.get("GridResource", ""))] += 1
    lines = ["   JOBS ST Route      GridResource\n"]
    for (route, letter, resource), jobs in sorted(counts.items()):
        lines.append(f"{jobs:7}  {letter} {route:<10} {resource}".rstrip() + "\n")
    return lines
