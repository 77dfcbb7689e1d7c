"""`kettle simulate calibrate`: delays of a simulation by what a real pool has recorded."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.times import micros

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from kettle_services.cli.output.screen import Screen
    from kettle_services.simulator.calibration import Calibration


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read, fit, play what was held out, and show."""
    from kettle_services.cli.reports.what_if_replay import own_settings, periods_of, step_of
    from kettle_services.simulator.calibration import calibrate
    from kettle_services.simulator.what_if_file import rules

    now = micros(datetime.now(UTC))
    until = min(now, arguments.until or now)
    if arguments.since >= until:
        raise UsageError("--since is a moment that is over, and earlier than --until")
    if not 0.0 < arguments.hold_out < 1.0:
        raise UsageError("--hold-out is a part of the period: more than 0 and less than 1")
    cut = until - round((until - arguments.since) * arguments.hold_out)
    home: Path = arguments.home or home_directory()
    own = own_settings(home, arguments.settings)
    try:
        with bars(screen, "frames") as bar:
            times = [(arguments.since, cut), (cut, until)]
            first, held_out = asyncio.run(
                periods_of(home, times, own.significant, bar, patience=arguments.patience)
            )
    except LogError as error:
        raise CommandError(f"{error}; kettle log check tells what is wrong") from error
    found = calibrate(
        first,
        held_out,
        rules(own.settings, worklife=own.worklife, factors={}),
        step=step_of(until - cut),
    )
    if not found.attempts:
        raise CommandError("no job ran to its end in the first part of that period: nothing can be fitted")
    if screen.as_json:
        screen.json(found)
    else:
        _show(found, screen)
    return 0


def _show(found: Calibration, screen: Screen) -> None:
    screen.say("[kettle]")
    screen.say(f'latency = "{found.latency * 1e3:.4g} ms"')
    screen.say(f'start = "{found.start * 1e3:.4g} ms"')
    screen.say()
    screen.say(
        f"Fitted to {counted(found.gaps, 'wait')} for a slot that had been given up, and to "
        f"{counted(found.attempts, 'attempt')} that ran to the end."
    )
    trusted = found.trust
    screen.say(
        f"In the part that was held out, {trusted.begun_both} of {counted(trusted.begun_recorded, 'job')} that began "
        f"also begin in the replay"
        + (
            f", half of them within {duration(trusted.apart_median)}."
            if trusted.apart_median is not None
            else "."
        )
    )
    for what, error in (
        ("The median wait", found.wait_error),
        ("All waits together", found.total_wait_error),
        ("The time to the last end", found.span_error),
    ):
        if error is not None:
            screen.say(f"{what}: wrong by {error:+.2%}.")
