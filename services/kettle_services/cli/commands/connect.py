"""`kettle connect`."""

import argparse
import asyncio
from contextlib import aclosing
from typing import Final

from kettle.client import Client
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Reach a service of a running job from here: a port of this machine that leads to it until the command is ended, or with - standard
input and output.  The gateway lets in the job's owner, those with whom the job is shared, and administrators.

Everybody on this machine can connect to a port that is opened here, and does so in your name.

examples:
  kettle connect 12.0 dask                 on a free port, which it prints
  kettle connect 12.0 dask 8786            on port 8786
  kettle connect 12.0 dask -               for programs, as ProxyCommand of ssh
  kettle connect 12.0 dashboard --open     and have a browser show it
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
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Listen, or pass on, until somebody ends it."""
    standard = arguments.port == _STANDARD
    if not standard and (not arguments.port.isdecimal() or int(arguments.port) > _MOST):
        raise UsageError(
            f"'{arguments.port}' is no port: give a number to {_MOST}, or - for standard input and output"
        )
    if standard and (arguments.open or screen.as_json):
        raise UsageError("with - standard output belongs to the service: leave --open and --json away")

    async def work(pool: Client) -> int:
        await pool.requests.transport.connection()
        if standard:
            return await _standard(pool, arguments.job, arguments.service, screen)
        return await _listen(pool, arguments, screen)

    return with_pool(arguments, work)


async def _listen(pool: Client, arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.client.published import forward, services_of

    job, service = arguments.job, arguments.service
    access = await pool.gateway.access()
    told = await services_of(job, access)
    names = [each.name for each in told.services]
    if service not in names and told.state == "up":
        raise CommandError(
            f"job {job} publishes no service {service}; it publishes: {', '.join(names) or 'none'}"
        )
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
