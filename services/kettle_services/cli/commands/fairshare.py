"""`kettle fairshare`: who may have which part of the pool, who has it, and how that was over time."""

import argparse
import asyncio
import time
from pathlib import Path
from typing import Final

from kettle.client import home_directory
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import json_option, pool_options, recorded_options, with_pool
from kettle_services.cli.output import plots
from kettle_services.cli.output.plots import Plot
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.reports import fair_share
from kettle_services.cli.reports.fair_share import METRICS, FairShare
from kettle_services.cli.times import FORMS, TimeParser, moment_argument

HELP: Final = """\
Who may have which part of the pool, who has which part of it now, and how that was over time.
A share is what a submitter would get if all other known submitters wanted something too: it is in inverse proportion to the
effective priority, within an accounting group if it is in one.

With --since shares, usage or priorities are drawn over time from the event log, so the database has to be reachable, as
for kettle log.  --output writes the plot as SVG, the only format, which browsers, editors and most converters read.

examples:
  kettle fairshare                                 shares and usage now
  kettle fairshare alice bob                       of these two
  kettle fairshare --since 7d                      what each had in use, in the last week
  kettle fairshare --since 1d --of priority        effective priorities; smaller is better
  kettle fairshare --since 1d --of share --output shares.svg
  kettle fairshare --since 1d --json               all figures, for programs
  kettle fairshare --simulated events --at 2h      of a pool that kettle simulate has played
"""

_RIGHT: Final = frozenset(
    {"SHARE", "HAS", "IN USE", "EFFECTIVE", "REAL", "FACTOR", "HOURS", "QUOTA", "ALLOTTED", "REQUESTED"}
)
_LINES: Final = 10
_COLUMNS: Final = 60
_POINTS: Final = 240


def arguments(parser: TimeParser) -> None:
    """What the command takes."""
    parser.add_argument("names", metavar="SUBMITTER", nargs="*", help="only these")
    parser.add_argument(
        "--since", type=moment_argument, metavar="TIME", help=f"draw it from then on, {FORMS}"
    )
    parser.add_argument("--of", choices=METRICS, default="usage", help="what is drawn (default: usage)")
    parser.add_argument("--output", type=Path, metavar="FILE.svg", help="write the plot to this file")
    json_option(parser)
    pool_options(parser)
    recorded_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask, and show."""
    output: Path | None = arguments.output
    if output is not None and output.suffix.lower() != ".svg":
        raise UsageError(f"{output}: plots are written as SVG; name it {output.with_suffix('.svg').name}")
    if output is not None and arguments.since is None:
        raise UsageError("--output writes what --since draws: say since when, as in --since 1d")
    if arguments.simulated is not None and arguments.since is not None:
        raise UsageError(
            "--since draws what a real pool has recorded; of a simulated one ask for a moment: --at"
        )
    now = with_pool(arguments, lambda pool: pool.accountant.priorities())
    found = fair_share.fair_share(now, arguments.names)
    if arguments.since is not None:
        past = _past(arguments, fair_share.fair_share(now), screen)
        found = fair_share.with_past(found, past)
    if output is not None and found.past is not None:
        _write(output, fair_share.plot(found.past, arguments.of))
    if screen.as_json:
        screen.json(found)
    else:
        show(found, arguments.of, screen)
        if output is not None:
            screen.note(f"The plot is in {output}.")
    return 0


def _past(arguments: argparse.Namespace, everybody: FairShare, screen: Screen) -> fair_share.StandingHistory:
    from kettle.eventsourcing.log import LogError
    from kettle_services.cli.output.progress_bars import bars
    from kettle_services.cli.reports.submitter_samples import sampled

    since, now = arguments.since / 1e6, time.time()
    if since >= now:
        raise UsageError("--since is a moment that is over")
    moments = [since + (now - since) * step / (_POINTS - 1) for step in range(_POINTS)]
    home: Path = arguments.home or home_directory()

    async def look() -> fair_share.StandingHistory:
        with bars(screen, "frames") as bar:
            samples = await sampled(home, moments, patience=arguments.patience, bar=bar)
        return fair_share.past_of(samples, everybody, arguments.names)

    try:
        return asyncio.run(look())
    except LogError as error:
        raise CommandError(f"{error}; kettle log check tells what is wrong") from error


def _write(output: Path, plot: Plot) -> None:
    try:
        output.write_text(plots.svg(plot), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {output}: {error.strerror}") from error


def show(found: FairShare, metric: str, screen: Screen) -> None:
    """Tables, and the drawing if there is a past."""
    if found.groups:
        _show_groups(found, screen)
    titles = ("SUBMITTER", "GROUP", "SHARE", "HAS", "IN USE", "EFFECTIVE", "REAL", "FACTOR", "HOURS")
    screen.table(
        titles,
        [
            (
                one.name, one.group or "-", f"{one.share:.1%}", f"{one.part:.1%}", f"{one.used:g}", one.effective,
                one.priority, f"{one.factor:g}", one.hours,
            )
            for one in found.submitters
        ],
        styles=["running" if one.used else "" for one in found.submitters],
        right=_RIGHT,
    )  # fmt: skip
    screen.note("SHARE is of its group, or of the pool; HAS is the part of all that is in use now.")
    if found.past is not None:
        _draw(fair_share.plot(found.past, metric), screen)


def _show_groups(found: FairShare, screen: Screen) -> None:
    rows = [
        (one.name, f"{one.quota:g}", f"{one.allotted:g}", f"{one.used:g}", f"{one.requested:g}")
        for one in found.groups
    ]
    screen.table(("GROUP", "QUOTA", "ALLOTTED", "IN USE", "REQUESTED"), rows, right=_RIGHT)
    screen.say()


def _draw(plot: Plot, screen: Screen) -> None:
    screen.say()
    screen.say(screen.paint(plot.title, "strong"))
    names = list(plot.series)[:_LINES]
    width = max(map(len, names), default=0)
    columns = max(20, min(_COLUMNS, (screen.width or 100) - width - 14))
    for name in names:
        numbers = plot.series[name]
        step = len(numbers) / columns
        drawn = [numbers[min(len(numbers) - 1, int(column * step + step / 2))] for column in range(columns)]
        last = next((n for n in reversed(numbers) if n is not None), 0.0)
        screen.say(
            f"{name.ljust(width)}  {screen.paint(plots.blocks(drawn, plot.most), 'running')}  {last:.4g}"
        )
    first = time.strftime("%Y-%m-%d %H:%M", time.localtime(plot.times[0]))
    screen.say(f"{''.ljust(width)}  from {first} to now; the highest is {plot.most:.4g}")
    if len(plot.series) > _LINES:
        screen.say(f"and {len(plot.series) - _LINES} more; name those that you want to see")
