"""`kettle health`."""

import argparse
import json
import os
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import at_least, json_option, seconds
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Ask a service of this machine, or of this container, how it is.  It has to have a port for that: KETTLE_HEALTH_PORT, the one that the
service was started with.  The exit status is 0 if it lives, with --ready if it does its work or stands by to take it over.

examples:
  kettle health                   does it live: what to restart it by
  kettle health --ready           does it do its work, or stand by
  kettle health --port 9641       another one, where several share a network
"""

_HOST: Final = "127.0.0.1"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--ready", action="store_true", help="ask whether it does its work, or stands by")
    parser.add_argument("--port", type=at_least(1, 65535), metavar="PORT", help="default: KETTLE_HEALTH_PORT")
    parser.add_argument(
        "--timeout", type=seconds, default=4.0, metavar="SECONDS", help="for the answer (default: 4)"
    )
    json_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask, and say what it answers."""
    port = arguments.port or _port()
    path = "/readyz" if arguments.ready else "/healthz"
    try:
        status, answers = _ask(port, path, arguments.timeout)
    except (OSError, HTTPException, ValueError) as error:
        raise CommandError(f"nothing answers at {_HOST}:{port}: {error}") from error
    if screen.as_json:
        screen.json(answers)
    else:
        screen.say(", ".join(f"{name}: {'yes' if each else 'no'}" for name, each in sorted(answers.items())))
    return 0 if status == 200 else 1


def _port() -> int:
    said = os.environ.get("KETTLE_HEALTH_PORT", "")
    if not said.isdecimal() or not int(said):
        raise CommandError("no port is known: give --port, or the KETTLE_HEALTH_PORT of the service")
    return int(said)


def _ask(port: int, path: str, timeout: float) -> tuple[int, dict[str, bool]]:
    """It is our own loopback interface, so a certificate is for others and proves nothing here."""
    try:
        return _answer(HTTPConnection(_HOST, port, timeout=timeout), path)
    except (HTTPException, ConnectionResetError):
        unproven = ssl.create_default_context()
        unproven.check_hostname, unproven.verify_mode = False, ssl.CERT_NONE
        return _answer(HTTPSConnection(_HOST, port, timeout=timeout, context=unproven), path)


def _answer(connection: HTTPConnection, path: str) -> tuple[int, dict[str, bool]]:
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, {str(name): bool(each) for name, each in json.loads(answer.read()).items()}
    finally:
        connection.close()
