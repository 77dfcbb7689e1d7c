"""`kettle usage`: what was used, added up by owners, groups, projects, machines, days and months."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, pool_options, with_pool
from kettle_services.cli.output import exports, plots
from kettle_services.cli.output.screen import Cell, Screen
from kettle_services.cli.reports import usage
from kettle_services.cli.reports.periods import PERIODS, midnight, slices
from kettle_services.cli.reports.usage import AXES, UsageTable
from kettle_services.cli.times import FORMS, TimeParser, moment_argument, rfc3339
from kettle_wire.commands.accounting import ReportUsage

HELP: Final = """\
What the jobs have used: all attempts that ended, those that did not finish their job included.
By owner, group (accounting_group, AcctGroup), project (project_name, ProjectName), machine, day or month of local time,
or by two of them crossed.

What an attempt has used counts in the days in which it ran; the attempt and the job that it completed count on the day
of its end.  Hours are core hours (wall-clock time times cores), but for WALL and CPU.  EFF is CPU by CORE.  GOOD was
used by programs that ran to their end, or up to their last checkpoint; LOST is the rest of CORE: what was evicted.
UNCHARGED are core hours that attempts took according to the queue, but that no machine reported.

examples:
  kettle usage                                      by owner, the last 30 days
  kettle usage --by group,month --since 2026-01-01  groups month by month
  kettle usage --by day --owner ada                 one person, day by day
  kettle usage --by machine,owner --since 7d --format csv
  kettle usage --by project --since 2026-10-01 --until 2026-11-01 --output october.parquet
  kettle usage --by owner,day --output usage.svg    a line of core hours for each owner
"""

_FORMATS: Final = ("table", "csv", "json", "parquet", "svg")
_HOURS: Final = {
    "WALL": "wall", "CORE": "slot_time", "CPU": "cpu", "GOOD": "good", "LOST": "lost", "UNCHARGED": "uncharged",
}  # fmt: skip
_DAYS: Final = 30
_BAR: Final = 20
_MOST_DAYS: Final = 10_000
"""Accounting takes no more moments."""


def arguments(parser: TimeParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "--by", type=_axes, default=["owner"], metavar="WHAT[,WHAT]",
        help=f"one or two of {', '.join(AXES)} (default: owner)",
    )  # fmt: skip
    parser.add_argument(
        "--since",
        type=moment_argument,
        metavar="TIME",
        help=f"from then on, {FORMS} (default: {_DAYS} days ago)",
    )
    parser.add_argument(
        "--until", type=moment_argument, metavar="TIME", help="up to then (default: today included)"
    )
    for name, what in (
        ("owner", "the jobs of this person"),
        ("group", "of this accounting group"),
        ("project", "of this project"),
        ("machine", "what ran on this machine"),
    ):
        parser.add_argument(
            f"--{name}",
            dest=f"{name}s",
            action="append",
            default=[],
            metavar="NAME",
            help=f"only {what}; may be repeated",
        )
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="how it is written (default: by the name of --output, else a table)",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write it to this file")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask, and show or write."""
    form = _format(arguments, screen)
    found = _found(arguments)
    if form == "table":
        show(found, screen)
        return 0
    data = _written(found, form)
    output: Path | None = arguments.output
    if output is None:
        screen.octets(data)
        return 0
    exports.write(output, data)
    if screen.as_json:
        screen.json({"output": str(output), "rows": len(found.rows)})
    else:
        screen.note(f"{output} has {len(found.rows)} rows.")
    return 0


def _found(arguments: argparse.Namespace) -> UsageTable:
    now = datetime.now(UTC)
    since: int = midnight(now, -_DAYS) if arguments.since is None else arguments.since
    until: int = midnight(now, 1) if arguments.until is None else arguments.until
    if until <= since:
        raise UsageError("--until is a moment after --since")
    by: list[str] = arguments.by
    parts = slices(since, until, next((axis for axis in by if axis in PERIODS), ""))
    if len(parts.names) > _MOST_DAYS:
        raise UsageError(f"a report has at most {_MOST_DAYS} days: say --by month, or a later --since")
    wanted = ReportUsage(
        by=usage.asked(by),
        cuts=[at / 1_000_000 for at in parts.cuts],
        owners=arguments.owners,
        groups=arguments.groups,
        projects=arguments.projects,
        machines=arguments.machines,
    )
    rows = with_pool(arguments, lambda pool: pool.accountant.report(wanted))
    return usage.ledger(by, parts, rows)


def _axes(text: str) -> list[str]:
    axes = text.split(",")
    for axis in axes:
        if axis not in AXES:
            raise argparse.ArgumentTypeError(f"'{axis}' is none of {', '.join(AXES)}")
    if len(axes) > 2 or len(set(axes)) < len(axes):
        raise argparse.ArgumentTypeError("a report is by one or two different things, as in owner,day")
    if set(axes) == set(PERIODS):
        raise argparse.ArgumentTypeError("each day is in one month: say one of the two")
    return axes


def _format(arguments: argparse.Namespace, screen: Screen) -> str:
    output: Path | None = arguments.output
    form: str | None = arguments.format
    if form is None and output is not None:
        form = exports.SUFFIXES.get(output.suffix.lower())
        if form is None:
            raise UsageError(f"{output}: its name does not say what to write; name it .csv, or say --format")
    if form is None:
        form = "json" if screen.as_json else "table"
    if form == "table" and output is not None:
        raise UsageError("a table is for people: write --format csv, json or parquet into a file")
    if form == "parquet" and output is None and screen.terminal:
        raise UsageError("Parquet is no text: say where to write it, as in --output usage.parquet")
    if form == "svg" and not set(arguments.by) & set(PERIODS):
        raise UsageError("a plot is over time: add day or month to --by, as in --by owner,day")
    return form


def _written(found: UsageTable, form: str) -> bytes:
    rows = [row.exported(found.by) for row in found.rows]
    match form:
        case "csv":
            return exports.as_csv(usage.columns(found.by), rows)
        case "parquet":
            return exports.as_parquet(usage.columns(found.by), rows)
        case "svg":
            return plots.svg(usage.plot(found)).encode()
        case _:
            total = found.total.exported(found.by)
            value = {
                "since": rfc3339(found.slices.cuts[0]),
                "until": rfc3339(found.slices.cuts[-1]),
                "by": found.by,
                "rows": rows,
                "total": {name: total[name] for name in total if name not in found.by},
            }
            return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def show(found: UsageTable, screen: Screen) -> None:
    """A table, with totals and, on a terminal, a bar for the core hours of each row."""
    most = max((row.slot_time for row in found.rows), default=0)
    titles = [*(axis.upper() for axis in found.by), "JOBS", "ATTEMPTS", *_HOURS]
    titles.insert(titles.index("CPU") + 1, "EFF")
    rows: list[list[Cell]] = []
    for row in (*found.rows, found.total):
        names = row.names if row is found.total else [name or "-" for name in row.names]
        cells: list[Cell] = [*names, row.jobs, row.attempts]
        cells += [
            f"{row.efficiency:.0%}" if title == "EFF" else row.hours(_HOURS[title])
            for title in titles[len(cells) :]
        ]
        if screen.terminal:
            share = row.slot_time / most if most and row is not found.total else 0.0
            cells.append("█" * round(share * _BAR))
        rows.append(cells)
    if screen.terminal:
        titles.append("")
    screen.table(
        titles,
        rows,
        styles=[*[""] * len(found.rows), "strong"],
        right=frozenset(titles[len(found.by) :]) - {""},
    )
    screen.note(
        f"Hours of attempts that ended, from {rfc3339(found.slices.cuts[0])} to {rfc3339(found.slices.cuts[-1])}."
    )
