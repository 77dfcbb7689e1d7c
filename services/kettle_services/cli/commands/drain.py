"""`kettle drain`."""

import argparse
from typing import Final

from kettle.client import Client
from kettle.client.hosts import Speed
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Empty a machine, for example for maintenance: it takes no new jobs, and running jobs are ended.  The account that its
startd runs as may do this, and the administrators that its settings name.

examples:
  kettle drain node7                            jobs have their retirement time, then their time to end
  kettle drain --quick node7                    only their time to end
  kettle drain --fast node7 --reason "smoke"    killed at once
  kettle drain node7 --check 'Cpus > 0'         only if this is true of every slot
  kettle drain node7 --start 'TARGET.IsShort'   meanwhile it takes such jobs, until the others have ended
  kettle drain node7 --resume-on-completion     take work again when it is empty
  kettle drain --cancel node7                   take work again; jobs that were told to end do end
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("machine", metavar="HOST", help="name of the machine, as in kettle status")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--graceful",
        dest="speed",
        action="store_const",
        const="graceful",
        help="let jobs run on for the machine's retirement time (this is the default)",
    )
    how.add_argument(
        "--quick", dest="speed", action="store_const", const="quick", help="ask jobs to end at once"
    )
    how.add_argument("--fast", dest="speed", action="store_const", const="fast", help="kill jobs")
    how.add_argument("--cancel", action="store_true", help="take work again")
    parser.add_argument("--reason", default="", metavar="TEXT", help="shown in the ads of its slots")
    parser.add_argument(
        "--check",
        default="",
        metavar="EXPR",
        help="do nothing unless this ClassAd expression is true of every slot",
    )
    parser.add_argument(
        "--start", default="", metavar="EXPR", help="START while it is being emptied (default: false)"
    )
    parser.add_argument(
        "--resume-on-completion", action="store_true", help="take work again when nothing runs any more"
    )
    parser.add_argument(
        "--request-id", default="", metavar="ID", help="with --cancel: only if this request drains it"
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    _check(arguments)

    async def work(pool: Client) -> tuple[str, str]:
        machine = await _machine(pool, arguments.machine)
        if arguments.cancel:
            await pool.hosts.cancel_drain(machine, arguments.request_id)
            return machine, ""
        speed: Speed = arguments.speed or "graceful"
        request = await pool.hosts.drain(
            machine,
            speed=speed,
            reason=arguments.reason,
            check=arguments.check,
            start=arguments.start,
            resume=arguments.resume_on_completion,
        )
        return machine, request

    machine, request = with_pool(arguments, work)
    if screen.as_json:
        screen.json({"machine": machine, "request": request, "draining": not arguments.cancel})
    elif arguments.cancel:
        screen.say(f"{machine} takes work again.")
    else:
        screen.say(f"{machine} is being drained (request {request}).")
        screen.note(
            f"See how far it is with: kettle status --slots; take it back with: kettle drain --cancel {machine}"
        )
    return 0


def _check(arguments: argparse.Namespace) -> None:
    if arguments.request_id and not arguments.cancel:
        raise UsageError("--request-id says which request is to be cancelled: it goes with --cancel")
    given = ("reason", "check", "start", "resume_on_completion")
    if arguments.cancel and (said := next((name for name in given if getattr(arguments, name)), "")):
        raise UsageError(f"--{said.replace('_', '-')} says how to drain, and --cancel that draining is over")
    from kettle.classad import ClassAdParseError, parse

    for name in ("check", "start"):
        text = getattr(arguments, name)
        try:
            if text:
                parse(text)
        except ClassAdParseError as error:
            raise UsageError(f"the expression of --{name} cannot be read: {error}") from error


async def _machine(pool: Client, said: str) -> str:
    """
    The machine's name in the pool, of which the part before the first dot is enough if it is one machine's only.
    """
    ads = await pool.ads("StartDaemon", projection=["Name"])
    names = sorted(str(ad.get("Name", "")) for ad in ads)
    found = [said] if said in names else [name for name in names if name.partition(".")[0] == said]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandError(f"{said} may be any of {', '.join(found)}: say the whole name")
    known = f"it has {', '.join(names[:20])}" if names else "it has none now"
    raise CommandError(f"the pool has no machine {said}; {known}.  See them with: kettle status --slots")
