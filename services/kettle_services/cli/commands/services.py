"""`kettle services`."""

import argparse
from typing import Final

import msgspec

from kettle.client import Client
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Cell, Screen
from kettle_wire.rest.services import JobServices, PublishedService

HELP: Final = """\
What running jobs publish (services in their descriptions, or kettle publish in the job): of your jobs and of those that others share
with you, or of one job.  SENT and RECEIVED are bytes to and from the job over connections that are open now.

examples:
  kettle services
  kettle services 12.3            of this job, and why it is not reached if it is not
  kettle services --json
"""
_RIGHT: Final = frozenset({"PORT", "OPEN", "SENT", "RECEIVED"})
_TITLES: Final = ("ID", "SERVICE", "KIND", "STATE", "WHERE", "USERS", "OPEN", "SENT", "RECEIVED")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("job", nargs="?", default="", metavar="ID", help="CLUSTER.PROC, as in 12.3")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask, and show."""

    async def work(pool: Client) -> int:
        from kettle.client.published import jobs_with_services, services_of

        await pool.requests.transport.connection()
        access = await pool.gateway.access()
        if arguments.job:
            jobs = [await services_of(arguments.job, access)]
        else:
            jobs = await jobs_with_services(access)
        if screen.as_json:
            screen.json([msgspec.to_builtins(each) for each in jobs])
            return 0
        rows = [_row(job, each, access.url) for job in jobs for each in job.services]
        if rows:
            screen.table(_TITLES, rows, right=_RIGHT)
        else:
            screen.say("No job that you may use publishes a service through this gateway.")
        for job in jobs:
            if job.why and arguments.job:
                screen.note(f"{job.why[:1].upper()}{job.why[1:]}.")
        return 0

    return with_pool(arguments, work)


def _row(job: JobServices, service: PublishedService, url: str) -> tuple[Cell, ...]:
    name = job.id.partition("@")[0]
    return (
        name,
        service.name,
        service.kind,
        job.state,
        f"{url}{service.path}" if service.path else f"kettle connect {name} {service.name}",
        ", ".join(each.person for each in service.users) or "-",
        sum(each.connections for each in service.users),
        sum(each.sent for each in service.users),
        sum(each.received for each in service.users),
    )
