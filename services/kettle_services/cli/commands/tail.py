"""`kettle tail`."""

import argparse
from typing import Final

from kettle.client import Client, CommandRefusedError, job_id
from kettle.client.jobs.access import STDERR, STDOUT, AttemptAccess
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import at_least, json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.codes import RefusalCode

HELP: Final = """\
Look at the output, or other files, of a job while it runs.  Files are named by their paths in the job's sandbox.

examples:
  kettle tail 12.3                      the end of its standard output
  kettle tail 12.3 --follow             and what is added to it, until the job ends
  kettle tail 12.3 --stderr
  kettle tail 12.3 logs/step1.log       a file of its sandbox
  kettle tail 12.3 --maxbytes 100000
"""

_USUAL_BYTES: Final = 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("job", metavar="ID", help="CLUSTER.PROC, as in 12.3")
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="files of its sandbox (default: its standard output)"
    )
    parser.add_argument("--stderr", action="store_true", help="its standard error")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the job ends")
    parser.add_argument(
        "--maxbytes",
        type=at_least(0),
        default=_USUAL_BYTES,
        metavar="N",
        help=f"how much of the end of each file (default: {_USUAL_BYTES})",
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    names = list(dict.fromkeys(arguments.files))
    if arguments.stderr:
        names.append(STDERR)
    names = names or [STDOUT]
    if arguments.follow and len(names) > 1:
        raise UsageError("one file can be followed at a time")

    async def work(pool: Client) -> int:
        visit = await pool.visit(job_id(arguments.job))
        if arguments.follow:
            await _follow(visit, names[0], arguments.maxbytes, screen)
            return 0
        return await _show(visit, names, arguments.maxbytes, screen)

    return with_pool(arguments, work)


async def _follow(visit: AttemptAccess, name: str, most: int, screen: Screen) -> None:
    end = await visit.peek(name, offset=-most, length=0)
    offset = end.offset if most else end.size
    async for piece in visit.follow(name, offset=offset):
        _tell(screen, name, piece.offset, piece.data)
    screen.note(f"This run of job {visit.job} is over; what has become of it: kettle events {visit.job}")


async def _show(visit: AttemptAccess, names: list[str], most: int, screen: Screen) -> int:
    failed = 0
    for name in names:
        try:
            end = await visit.tail(name, most=most)
        except CommandRefusedError as error:
            if len(names) == 1 or error.code == RefusalCode.NOT_RUNNING:
                raise
            screen.trouble(str(error))
            failed += 1
            continue
        if len(names) > 1 and not screen.as_json:
            screen.octets(f"==> {name} <==\n".encode())
        _tell(screen, name, end.offset, end.data)
    return 1 if failed == len(names) else 0


def _tell(screen: Screen, name: str, offset: int, data: bytes) -> None:
    """As it is, or as a line of JSON, in which what is no text is replaced."""
    if screen.as_json:
        screen.json_line({"file": name, "offset": offset, "text": data.decode(errors="replace")})
        return
    screen.octets(data)
    screen.flush()
