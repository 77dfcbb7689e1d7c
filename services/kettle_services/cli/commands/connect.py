"""`kettle connect`."""

import argparse
import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Final

from kettle.client import Client
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.rest.services import JobServices, PublishedService

HELP: Final = """\
Reach a service of a running job from here: a port of this machine that leads to it until the command is ended, or with - standard
input and output.  The gateway lets in the job's owner, those with whom the job is shared, and administrators.

Everybody on this machine can connect to a port that is opened here, and does so in your name.

With --certificate nothing is opened: a key and a certificate are made with which your own programs that speak TLS, such as clients of
databases, come to the service by its name, from wherever they are, until the time that is said.

examples:
  kettle connect 12.0 dask                 on a free port, which it prints
  kettle connect 12.0 dask 8786            on port 8786
  kettle connect 12.0 dask -               for programs, as ProxyCommand of ssh
  kettle connect 12.0 dashboard --open     and have a browser show it
  kettle connect 12.0 db --certificate .db    files for programs that speak TLS, and the name by which they come
"""
_STANDARD: Final = "-"
_MOST: Final = 65535
_PIECE: Final = 256 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("job", metavar="ID", help="CLUSTER.PROC, as in 12.3")
    parser.add_argument("service", metavar="SERVICE", help="as the job names it: kettle services ID")
    parser.add_argument(
        "port", nargs="?", default="0", metavar="PORT", help="of this machine (default: a free one), or -"
    )
    parser.add_argument("--open", action="store_true", help="have a browser open the port")
    parser.add_argument(
        "--certificate",
        type=Path,
        metavar="DIRECTORY",
        help="make a certificate there for programs that speak TLS",
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Listen, or pass on, until somebody ends it."""
    standard = arguments.port == _STANDARD
    if not standard and (not arguments.port.isdecimal() or int(arguments.port) > _MOST):
        raise UsageError(
            f"'{arguments.port}' is no port: give a number to {_MOST}, or - for standard input and output"
        )
    if arguments.certificate is not None and (arguments.open or arguments.port != "0"):
        raise UsageError("with --certificate no port is opened here: leave PORT and --open away")
    if standard and (arguments.open or screen.as_json):
        raise UsageError("with - standard output belongs to the service: leave --open and --json away")

    async def work(pool: Client) -> int:
        await pool.requests.transport.connection()
        if arguments.certificate is not None:
            return await _certificate(pool, arguments, screen)
        if standard:
            return await _standard(pool, arguments.job, arguments.service, screen)
        return await _listen(pool, arguments, screen)

    return with_pool(arguments, work)


async def _listen(pool: Client, arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.client.published import forward, services_of

    job, service = arguments.job, arguments.service
    access = await pool.gateway.access()
    told = await services_of(job, access)
    if told.state == "up":
        _published(told, service)
    if told.why:
        screen.note(f"Not yet: {told.why}.")
    try:
        async with forward(job, service, int(arguments.port), access=access, refused=screen.trouble) as port:
            _say(screen, job, service, port)
            if arguments.open:
                _open(f"http://127.0.0.1:{port}/", screen)
            await asyncio.get_running_loop().create_future()  # until somebody interrupts it
    except OSError as error:
        raise CommandError(
            f"port {arguments.port} of this machine cannot be had: {error.strerror}"
        ) from error
    return 0


async def _certificate(pool: Client, arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.client.published import services_of
    from kettle.client.service_certificates import fetch_certificate

    job, service = arguments.job, arguments.service
    access = await pool.gateway.access()
    told = await services_of(job, access)
    found = _published(told, service)
    if not found.tls:
        raise CommandError(
            f"the service {service} of job {job} is not reached by TLS: it is of the kind {found.kind}, and only tcp is"
            if found.kind != "tcp"
            else "the pool's gateway takes no programs that speak TLS (services_domain of [gateway] in kettle.toml)"
        )
    files = await fetch_certificate(access, arguments.certificate)
    if told.why:
        screen.note(f"Not yet: {told.why}.")
    host, _, port = found.tls.rpartition(":")
    if screen.as_json:
        screen.json_line(
            {
                "job": job,
                "service": service,
                "host": host,
                "port": int(port),
                "key": str(files.key),
                "certificate": str(files.certificate),
                "authority": str(files.authority or ""),
                "expires": files.expires.isoformat(),
            }
        )
        return 0
    until = files.expires.astimezone()
    screen.say(f"The service {service} of job {job} is at {host}, port {port}, until {until:%Y-%m-%d %H:%M}.")
    screen.say(f"Programs show {files.certificate} with the key {files.key}.")
    whom = files.authority or "the authorities of this system"
    screen.say(f"They trust {whom} for the gateway.")
    return 0


def _published(told: JobServices, service: str) -> PublishedService:
    """One of the services of a job; raises CommandError: there is none of this name."""
    for each in told.services:
        if each.name == service:
            return each
    names = ", ".join(each.name for each in told.services) or "none"
    raise CommandError(
        f"job {told.id.partition('@')[0]} publishes no service {service}; it publishes: {names}"
    )


def _say(screen: Screen, job: str, service: str, port: int) -> None:
    if screen.as_json:
        screen.json_line({"job": job, "service": service, "host": "127.0.0.1", "port": port})
    else:
        screen.say(f"The service {service} of job {job} is at 127.0.0.1:{port}; end this with Ctrl-C.")
    screen.flush()


def _open(address: str, screen: Screen) -> None:
    from kettle_services.cli.browser import led_to

    if not led_to(address):
        screen.note(f"There is no browser here: open {address}")


async def _standard(pool: Client, job: str, service: str, screen: Screen) -> int:
    from kettle.client.jobs.side_program import standard_input
    from kettle.client.published import open_stream

    reader, writer = await open_stream(job, service, access=await pool.gateway.access())

    async def send() -> None:
        async with aclosing(standard_input()) as pieces:
            async for data in pieces:
                writer.write(data)
                await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    sending = asyncio.create_task(send(), name="standard input")
    try:
        while data := await reader.read(_PIECE):
            screen.pass_on(1, data)
    except ConnectionError as error:
        raise CommandError(f"the connection to {service} of job {job} broke: {error}") from error
    finally:
        sending.cancel()
        await asyncio.wait([sending])
        writer.close()
    return 0
