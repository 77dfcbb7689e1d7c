"""
A period of a pool's log, played again with a change: `kettle what-if`, and `kettle simulate run --from log`.
"""

import argparse
import asyncio
from datetime import UTC, datetime
from pathlib import Path

from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.output import plots
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import what_if, what_if_replay
from kettle_services.cli.times import micros


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Read, play twice, and show; the period is in `since` and `until`, the file of the change in `change`.
    """
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
