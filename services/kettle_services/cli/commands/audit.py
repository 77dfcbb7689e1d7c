"""`kettle audit`."""

import argparse
from typing import Final

from kettle_services.cli.options import at_least, json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS, moment_argument, precise
from kettle_wire.commands.iam import MOST_ACTS, AuditEntry, QueryAudit

HELP: Final = """\
What was done about who may do what, what administrators had services do, and who was refused: join tokens, bans, rules,
sessions, machines that joined or were drained, daemons that were switched off, priorities, jobs of others.
For administrators.  Alarms, such as a join token that was used twice, are marked.

It is a table on a terminal; elsewhere, and with --json, each entry is a line of JSON.

examples:
  kettle audit --since 1d                    the last day
  kettle audit --who ada                     what ada did, and what was done to her
  kettle audit --what jointoken              everything about join tokens
  kettle audit --what administrator          drain, off, reconfig, userprio, hold of others' jobs and so on
  kettle audit --what access.denied --since 1h
  kettle audit --alarms
  kettle audit --json | jq -r 'select(.alarm).address' | sort | uniq -c
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--who", default="", metavar="NAME", help="who did it, or to whom it was done")
    parser.add_argument(
        "--what", default="", metavar="TYPE", help="the beginning of a type, as ban or jointoken.misused"
    )
    parser.add_argument("--since", type=moment_argument, metavar="TIME", help=f"from a moment on, {FORMS}")
    parser.add_argument("--until", type=moment_argument, metavar="TIME", help="up to a moment")
    parser.add_argument("--alarms", action="store_true", help="only what somebody should look at")
    parser.add_argument(
        "--limit", type=at_least(1), default=1000, metavar="N", help="at most the N newest (default: 1000)"
    )
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    wanted = QueryAudit(
        who=arguments.who,
        what=arguments.what,
        since=(arguments.since or 0) / 1e6,
        until=(arguments.until or 0) / 1e6,
        limit=min(arguments.limit, MOST_ACTS),
    )
    found = with_pool(arguments, lambda pool: pool.iam.audit(wanted))
    acts = [act for act in found.acts if act.alarm or not arguments.alarms]
    if screen.as_json or not screen.terminal:
        for act in acts:
            screen.json_line(act)
        return 0
    titles = ("WHEN", "WHAT", "WHO", "FROM", "")
    styles = ["bad" if act.alarm else "" for act in acts]
    screen.table(titles, [_row(act) for act in acts], styles=styles, whole=True)
    if not found.complete:
        screen.note(f"There are older entries; see more with --limit, up to {MOST_ACTS}.")
    return 0


def _row(act: AuditEntry) -> tuple[str, ...]:
    when = precise(int(act.at * 1e6)).partition(".")[0]
    return when, act.what, act.who or "-", act.address or "-", act.sentence
