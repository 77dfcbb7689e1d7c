"""condor_job_router_info: routes, and where jobs would go by them."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

if TYPE_CHECKING:
    from kettle.client.short_lived import ShortLivedClient
    from kettle.routes import Decision, RouteTable
    from kettle_wire.ads.types import Ad

OPTIONS: Final = {
    "config": Option(),
    "debug": Option(letters=True),
    "diagnostic": Option(),
    "ignore-prior-routing": Option(),
    "jobads": Option(takes=1),
    "log-steps": Option(),
    "match-jobs": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "route-jobs": Option(takes=1),
    "routes": Option(takes=1),
}
_HELP: Final = """\
usage: {name} -config | -match-jobs | -route-jobs FILE [options]

Show the routes of a compute entrypoint, or where jobs would go by them; nothing is done to any job.

  -config                the routes, in the order in which they are tried, with the transforms around them
  -match-jobs            the route of each job, and of each route before it why it does not take the job
  -route-jobs FILE       the ads that jobs have on their routes, into a file; - is standard output
  -log-steps             with -route-jobs what each statement changes
  -ignore-prior-routing  as if no job had been routed yet, and all were idle
  -jobads FILE           jobs of this file, without asking for any; - is standard input.  Else those of the queue
  -routes FILE           routes of this file, not those of the entrypoint
  -name SCHEDD, -pool P  of which access point
"""
HELP: Final = {
    name: _HELP.format(name=name) for name in ("condor_job_router_info", "condor_ce_job_router_info")
}
_ROUTING: Final = frozenset(
    {"routedtojobid", "routedfromjobid", "routename", "routedby", "routedjob", "managed", "managedmanager"}
)
"""Attributes, in lower case, by which a job shows that it was routed."""


class _Wanted(msgspec.Struct):
    """What was typed."""

    config: bool = False
    match: bool = False
    target: str = ""
    steps: bool = False
    anew: bool = False
    jobads: str = ""
    routes: str = ""
    name: str = ""
    pool: str = ""


def run(name: str, words: list[str]) -> int:
    """Show the routes, or try them on jobs."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if not (wanted.config or wanted.match or wanted.target):
        raise WordsError("say -config, -match-jobs or -route-jobs FILE")
    client = (
        None
        if wanted.routes and (wanted.jobads or wanted.config)
        else client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    )
    table = _table(wanted, client)
    if wanted.config:
        sys.stdout.writelines(_shown(table))
        return 0
    jobs = _jobs(wanted, client)
    from kettle.routes import Counters, route

    decided = [(ad, route(ad, table, Counters(), int(time.time()))) for ad in jobs]
    _tell(wanted, table, decided)
    if wanted.target:
        _write(decided, wanted, name)
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "config":
            wanted.config = True
        case "match-jobs":
            wanted.match = True
        case "route-jobs":
            wanted.target = given.values[0]
        case "log-steps":
            wanted.steps = True
        case "ignore-prior-routing":
            wanted.anew = True
        case "jobads" | "routes" | "name" | "pool" as option:
            setattr(wanted, option, given.values[0])
        case "":
            raise WordsError(f"'{given.values[0]}' stands behind no option")
        case _:
            pass


def _table(wanted: _Wanted, client: "ShortLivedClient | None") -> "RouteTable":
    from kettle.routes import RouteFileError, read_routes

    try:
        if client is None or wanted.routes:
            return read_routes(_read(wanted.routes).decode("utf-8", "surrogateescape"), wanted.routes)
        shown = client.run(lambda pool: pool.entrypoint.routes())
        return read_routes(shown.text, shown.source)
    except RouteFileError as error:
        raise ToolError(f"ERROR: {error}") from error


def _jobs(wanted: _Wanted, client: "ShortLivedClient | None") -> "list[Ad]":
    from kettle.classad import ClassAdParseError, read_ads

    if client is None or wanted.jobads:
        try:
            ads = [ad.to_wire() for ad in read_ads(_read(wanted.jobads).decode("utf-8", "surrogateescape"))]
        except ClassAdParseError as error:
            raise ToolError(f"ERROR: {wanted.jobads}, line {error.line}: {error.sentence}") from error
    else:
        ads = client.run(lambda pool: pool.jobs())
    if not wanted.anew:
        return ads
    return [
        {
            name: 1 if name.lower() == "jobstatus" else value
            for name, value in ad.items()
            if name.lower() not in _ROUTING
        }
        for ad in ads
    ]


def _read(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise ToolError(f"ERROR: Can't open file {name}: {error.strerror}") from error


def _shown(table: "RouteTable") -> Iterator[str]:
    """As HTCondor shows them."""
    for title, transforms in (("Pre-Route", table.before), ("Post-Route", table.after)):
        for transform in transforms:
            yield f"{title} Transform : {transform.source.removeprefix('transform ')}\n"
            yield from (f"\t{each}\n" for each in transform.statements)
            yield "\n"
    for number, route in enumerate(table.routes, 1):
        yield (
            f'Route {number}\nName         : "{route.name}"\nSource       : file\nUniverse     : {route.universe}\n'
            f"MaxJobs      : {route.max_jobs}\nMaxIdleJobs  : {route.max_idle_jobs}\n"
            f"GridResource : {route.grid_resource}\nRequirements : {route.requirements}\n"
        )
        yield from (f"\t{each}\n" for each in route.transform.statements)
        yield "\n"


def _tell(wanted: _Wanted, table: "RouteTable", decided: "list[tuple[Ad, Decision]]") -> None:
    """On standard error where standard output is for the ads."""
    from kettle.routes.sentences import step_sentence

    out = sys.stderr if wanted.target == "-" else sys.stdout
    names = ", ".join(route.name for route in table.routes)
    out.write(f"Matching jobs against routes to find candidate jobs: {names}\n")
    for number, (ad, decision) in enumerate(decided, 1):
        out.write(f"Checking Job src={_called(ad, number)} against all routes\n")
        for refusal in decision.refusals:
            out.write(f"\tRoute does not match: {refusal.route or 'all'}: {refusal.sentence}\n")
        if decision.route:
            out.write(f"\tRoute Matches: {decision.route}\n")
        for step in decision.trace if wanted.steps else ():
            out.write(f"\t{step_sentence(step)}\n")
    out.write(f"{sum(bool(decision.route) for _, decision in decided)} candidate jobs found\n")


def _called(ad: "Ad", number: int) -> str:
    names = {name.lower(): value for name, value in ad.items()}
    if "clusterid" not in names:
        return str(number)
    return f"{names['clusterid']}.{names.get('procid', 0)}"


def _write(decided: "list[tuple[Ad, Decision]]", wanted: _Wanted, name: str) -> None:
    from kettle.classad import ClassAd, Form, write_ads

    routed = [
        ClassAd.from_wire(
            {
                key: value
                for key, value in {**ad, **decision.set, "RouteName": decision.route}.items()
                if key not in decision.removed
            }
        )
        for ad, decision in decided
        if decision.route
    ]
    data = "".join(write_ads(routed, Form.LONG)).encode("utf-8", "surrogateescape")
    if wanted.target == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    try:
        Path(wanted.target).write_bytes(data)
    except OSError as error:
        raise ToolError(f"{name}: cannot write {wanted.target}: {error.strerror}") from error
