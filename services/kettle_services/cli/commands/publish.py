"""`kettle publish`."""

import argparse
from typing import Final

from kettle.execution.job_environment.condor_chirp import Chirp, ChirpError
from kettle.published.services import ServiceError, parse_service
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Within a running job: publish a port on which the job listens, so that its owner, and those with whom its services are shared
(services_shared_with in its description), reach it through the pool's gateway.  Prints the address when the gateway has it.
A job that knows its ports beforehand says services = NAME:PORT/KIND in its description instead.

examples:
  kettle publish dashboard:8787/http         HTTP and WebSockets
  kettle publish notebook:8888/http-prefix   the same of a server that expects the whole path
  kettle publish scheduler:8786/tcp          bytes
  kettle unpublish dashboard
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("service", metavar="NAME:PORT/KIND", help="as in web:8080/http")
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Publish it."""
    try:
        service = parse_service(arguments.service)
    except ServiceError as error:
        raise UsageError(str(error)) from error
    try:
        address = Chirp().data("publish", str(service)).decode()
    except (ChirpError, OSError) as error:
        raise CommandError(f"{service} is not published: {error}") from error
    if screen.as_json:
        screen.json({"name": service.name, "port": service.port, "kind": service.kind, "url": address})
    else:
        screen.say(address)
    return 0
