"""`kettle dask`: clusters of Dask, whose schedulers and workers are jobs."""

import argparse
from typing import Final

from kettle.client import Client, CommandRefusedError
from kettle.client.jobs.access import STDERR
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import at_least, json_option, pool_options, seconds, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import precise
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.jobs import JobId
from kettle_wire.sessions import SessionAdapt, SessionSize

KIND: Final = "dask"

HELP: Final = """\
Clusters of Dask in the pool: each is a session of one scheduler and its workers, which are jobs of yours.
A notebook finds one by its name: KettleCluster.from_name("NAME") of kettle.dask.

examples:
  kettle dask create analysis --workers 4
  kettle dask create --minimum 0 --maximum 20 --idle 3600     as many workers as there is work for
  kettle dask list
  kettle dask scale analysis 20
  kettle dask adapt analysis 2 40
  kettle dask logs analysis                                  what its scheduler and workers have written
  kettle dask stop analysis

kettle dask COMMAND --help explains each.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    create = commands.add_parser("create", help="begin a cluster")
    create.add_argument(
        "session", nargs="?", default="", metavar="NAME", help="how you call it (default: dask- and its id)"
    )
    create.add_argument("--profile", default="", help="the pool's name for a kind of cluster")
    create.add_argument("-n", "--workers", type=at_least(0), metavar="N", help="how many workers")
    create.add_argument(
        "--minimum", type=at_least(0), metavar="N", help="adapt to the load: at least so many"
    )
    create.add_argument("--maximum", type=at_least(0), metavar="N", help="and at most so many")
    create.add_argument("--cores", type=at_least(1), metavar="N", help="of each worker")
    create.add_argument("--memory", type=at_least(1), metavar="MIB", help="of each worker")
    create.add_argument("--gpus", type=at_least(0), metavar="N", help="of each worker")
    create.add_argument("--disk", type=at_least(1), metavar="MIB", help="of each worker")
    create.add_argument("--image", default="", help="the container image of scheduler and workers")
    create.add_argument("--site", default="", help="the SiteName of their machines")
    create.add_argument("--life", type=seconds, metavar="SECONDS", help="after which it ends")
    create.add_argument("--idle", type=seconds, metavar="SECONDS", help="without work, after which it ends")
    create.add_argument(
        "--share", action="append", default=[], metavar="WHO", help="a person, or group:NAME; may be repeated"
    )
    listing = commands.add_parser("list", help="your clusters, and those shared with you")
    show = commands.add_parser("show", help="one, and for what its workers wait")
    scale = commands.add_parser("scale", help="have so many workers")
    adapt = commands.add_parser("adapt", help="have as many workers as the load wants")
    stop = commands.add_parser("stop", help="end one, and its jobs")
    logs = commands.add_parser("logs", help="the ends of what its scheduler and workers have written")
    for each in (show, scale, adapt, stop, logs):
        each.add_argument("cluster", metavar="NAME|ID", help="of the cluster")
    scale.add_argument("workers", type=at_least(0), metavar="N")
    adapt.add_argument("minimum", type=at_least(0), metavar="LEAST")
    adapt.add_argument("maximum", type=at_least(0), metavar="MOST")
    logs.add_argument(
        "--maxbytes", type=at_least(0), default=4096, metavar="N", help="of each (default: 4096)"
    )
    listing.add_argument("--ended", action="store_true", help="also those that are over")
    for each in (create, listing, show, scale, adapt, stop, logs):
        json_option(each)
        pool_options(each)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what:
        case "create":
            new = _new(arguments)
            return _told(screen, with_pool(arguments, lambda pool: pool.sessions.create(new)), "requested")
        case "list":
            return _list(arguments, screen)
        case "show":
            return _told(screen, with_pool(arguments, lambda pool: _cluster(pool, arguments)), "")
        case "logs":
            return with_pool(arguments, lambda pool: _logs(pool, arguments, screen))
        case _:
            return _told(screen, with_pool(arguments, lambda pool: _change(pool, arguments)), "")


def _new(arguments: argparse.Namespace) -> NewSession:
    return NewSession(
        kind=KIND,
        profile=arguments.profile,
        name=arguments.session or None,
        image=arguments.image,
        size=SessionSize(
            workers=arguments.workers,
            cpus=arguments.cores,
            memory=arguments.memory,
            gpus=arguments.gpus,
            disk=arguments.disk,
        ),
        adapt=_limits(arguments),
        site=arguments.site,
        life=arguments.life,
        idle=arguments.idle,
        share=arguments.share,
    )


def _limits(arguments: argparse.Namespace) -> SessionAdapt | None:
    low, high = arguments.minimum, arguments.maximum
    if low is None and high is None:
        return None
    if high is None:
        raise UsageError("a cluster that adapts needs --maximum: how many workers it may have at most")
    if (low or 0) > high:
        raise UsageError(f"a cluster cannot have at least {low} and at most {high} workers")
    return SessionAdapt(minimum=low or 0, maximum=high)


async def _cluster(pool: Client, arguments: argparse.Namespace) -> SessionView:
    found = await pool.sessions.show(arguments.cluster)
    if found.kind != KIND:
        raise CommandError(f"{arguments.cluster} is a session of the kind {found.kind}, no cluster of Dask")
    return found


async def _change(pool: Client, arguments: argparse.Namespace) -> SessionView:
    found = await _cluster(pool, arguments)
    match arguments.what:
        case "scale":
            return await pool.sessions.scale(found.id, arguments.workers)
        case "adapt":
            limits = _limits(arguments)
            assert limits is not None, "both are needed"
            return await pool.sessions.adapt(found.id, limits.minimum, limits.maximum)
        case _:
            return await pool.sessions.stop(found.id, "kettle dask stop")


def _told(screen: Screen, cluster: SessionView, what: str) -> int:
    if screen.as_json:
        screen.json(cluster)
        return 0
    said = what or ": ".join(each for each in (cluster.state, cluster.reason) if each)
    screen.say(f"{cluster.name} ({cluster.id}): {said}; {cluster.summary}")
    return 0


def _list(arguments: argparse.Namespace, screen: Screen) -> int:
    found = with_pool(arguments, lambda pool: pool.sessions.list(ended=arguments.ended))
    clusters = [each for each in found if each.kind == KIND]
    if screen.as_json:
        screen.json(clusters)
        return 0
    if not clusters:
        screen.note("There are no clusters; one begins with: kettle dask create")
        return 0
    rows = [
        (
            each.name,
            each.id,
            each.owner,
            each.state,
            each.running,
            each.wanted,
            precise(int(each.created * 1e6)),
            each.reason,
        )
        for each in clusters
    ]
    titles = ("NAME", "ID", "OWNER", "STATE", "WORKERS", "WANTED", "SINCE", "REASON")
    screen.table(titles, rows, right=frozenset({"WORKERS", "WANTED"}))
    return 0


async def _logs(pool: Client, arguments: argparse.Namespace, screen: Screen) -> int:
    """Of the members that run; what others have written is gone with their jobs."""
    found = await _cluster(pool, arguments)
    shown = 0
    for member in found.members:
        if member.status != "running":
            continue
        role = "scheduler" if member.role == "head" else "worker"
        try:
            visit = await pool.visit(JobId.parse(member.job))
            end = await visit.tail(STDERR, most=arguments.maxbytes)
        except CommandRefusedError as error:
            screen.trouble(f"{role} {member.job}: {error}")
            continue
        shown += 1
        if screen.as_json:
            text = end.data.decode(errors="replace")
            screen.json_line({"role": role, "job": member.job, "text": text})
            continue
        screen.octets(f"==> {role}, job {member.job} <==\n".encode() + end.data)
        screen.flush()
    if not shown:
        screen.note(f"No job of {found.name} runs; why: kettle dask show {found.name}")
    return 0
