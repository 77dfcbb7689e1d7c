"""`kettle what-if`: waiting times and usage of submitters under other rules."""

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, reach_options, seconds
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS, TimeParser, micros, moment_argument

HELP: Final = """\
Play a period of the past again with other quotas, priority factors, policies or machines, and compare: how long submitters
waited and what they had, according to the log, to a replay without the change, and to one with it.  The first two show
how far the third can be trusted.

Submissions, holds, removals and machines are those of the log; who gets which slot when is decided again by the
negotiator's own code, on a simulated clock.  A job takes as long as it took.  Only the log is read, so the database has to
be reachable, as for kettle log; nothing is changed anywhere.

FILE is TOML (or JSON, named *.json), with any of these tables:

  [negotiator]                   # settings, as in kettle.toml; what is not named stays as it is
  priority_halflife = 3600
  preemption_requirements = "RemoteUserPrio > TARGET.SubmitterUserPrio * 1.2"
  groups = { physics = { quota = 40 }, chem = { quota_dynamic = 0.5 } }

  [factors]                      # priority factors
  alice = 10
  "<physics>" = 100

  [machines]
  scale = 1.5                    # half as many machines more
  user_preemption = true         # what machines advertise: also start and rank
  [[machines.add]]
  count = 4
  cpus = 64
  memory = 262144                # MiB

  [schedd]
  claim_worklife = 600

examples:
  kettle what-if --since 1d --change more-for-physics.toml
  kettle what-if --since '2026-11-20 08:00' --until '2026-11-20 20:00' --change change.toml alice bob
  kettle what-if --since 7d --change change.toml --svg usage.svg
  kettle what-if --since 7d --change change.toml --settings kettle.toml.of-last-week
  kettle what-if --since 1d --change change.toml --json | jq '.submitters[] | {name, wait: .changed.wait_mean}'
"""


def arguments(parser: TimeParser) -> None:
    """What the command takes."""
    parser.add_argument("names", metavar="SUBMITTER", nargs="*", help="show only these")
    parser.add_argument(
        "--since",
        type=moment_argument,
        required=True,
        metavar="TIME",
        help=f"when the period begins, {FORMS}",
    )
    parser.add_argument("--until", type=moment_argument, metavar="TIME", help="when it ends (default: now)")
    parser.add_argument("--change", type=Path, required=True, metavar="FILE", help="what is changed")
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="the pool's settings then (default: its kettle.toml, as it is now)",
    )
    parser.add_argument(
        "--step",
        type=seconds,
        metavar="SECONDS",
        help="between two negotiation cycles at least (default: a 5000th of the period, 0.1 or more)",
    )
    parser.add_argument("--svg", type=Path, metavar="FILE.svg", help="draw what was in use over time")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read, play twice, and show."""
    from kettle.client import home_directory
    from kettle.eventsourcing.log import LogError
    from kettle_services.cli.output import plots
    from kettle_services.cli.output.progress_bars import bars
    from kettle_services.cli.reports import what_if, what_if_replay

    now = micros(datetime.now(UTC))
    until = min(now, arguments.until or now)
    if arguments.since >= until:
        raise UsageError("--since is a moment that is over, and earlier than --until")
    drawing: Path | None = arguments.svg
    if drawing is not None and drawing.suffix.lower() != ".svg":
        raise UsageError(f"{drawing}: it is written as SVG; name it {drawing.with_suffix('.svg').name}")
    asked = what_if_replay.WhatIfQuestion(
        home=arguments.home or home_directory(),
        since=arguments.since,
        until=until,
        change=arguments.change,
        settings=arguments.settings,
        step=round(arguments.step * 1e6) if arguments.step else None,
        patience=arguments.patience,
    )
    base, changed = what_if_replay.change_of(asked)
    try:
        with bars(screen, "frames") as bar:
            period = asyncio.run(
                what_if_replay.period_of(asked, [*base.significant, *changed.significant], bar)
            )
    except LogError as error:
        raise CommandError(f"{error}; kettle log check tells what is wrong") from error
    with bars(screen, "simulated minutes") as bar:
        found = what_if_replay.answer(asked, period, base, changed, bar)
    if not found.submitters:
        raise CommandError("nobody had a job in that period")
    if drawing is not None:
        try:
            drawing.write_text(plots.svg(what_if.plot(found)), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"cannot write {drawing}: {error.strerror}") from error
    if screen.as_json:
        screen.json(found)
    else:
        what_if.show(found, arguments.names, screen)
        for name in what_if_replay.nobody_of(found, list(changed.factors)):
            screen.note(f"{name} had no jobs in that period: its factor has no effect.")
        if drawing is not None:
            screen.note(f"The drawing is in {drawing}.")
    return 0
