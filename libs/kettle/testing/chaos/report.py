"""What a run has shown: for programs as JSON, for people as tables."""

import io
import math
import statistics
from collections import Counter, defaultdict
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from kettle.testing.chaos.invariants import InvariantResult
from kettle.testing.chaos.nemesis import Outcome


class Report(msgspec.Struct, kw_only=True):
    """One run."""

    seed: int
    replay: str
    """The command that runs the same schedule again."""
    seconds: float
    """How long faults were made."""
    took: float
    """Seconds, from the start of the pool to the verdict."""
    faults: int
    """Those that were made; one whose target did not run at that moment is not counted."""
    skipped: int
    submitted: int
    """Jobs of which we were told that they are recorded."""
    completed: int
    removed: int
    attempts: int
    events: int
    commands: int
    unanswered: int
    """Submissions and commands that nobody answered within the clients' patience."""
    held_by_pool: dict[str, int]
    """Holds that nobody asked for, by code."""
    recovered_within: float
    """Seconds: the longest that the pool took to work again after a fault."""
    verdicts: list[InvariantResult]
    outcomes: list[Outcome]
    unavailable: dict[str, str]
    """Kinds of faults that could not be made here, and why."""
    kept: str = ""
    """The directory with logs and schedule, if something is wrong."""

    @property
    def clean(self) -> bool:
        """Whether every law was kept."""
        return all(verdict.kept for verdict in self.verdicts)


_COLUMNS: Final = ("fault", "target", "made", "median s", "slowest s")


def rows(outcomes: list[Outcome]) -> list[tuple[str, str, int, str, str]]:
    """By kind and target: how often, and how many seconds until the pool worked again, median and most."""
    found: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for outcome in outcomes:
        if not outcome.skipped:
            found[outcome.fault.kind, outcome.fault.target].append(outcome.recovered_seconds)
    return [
        (*name, len(took), _shown(statistics.median(known)) if (known := [t for t in took if t is not None]) else "-",
         "never" if None in took else _shown(max(known)))
        for name, took in sorted(found.items())
    ]  # fmt: skip


def markdown(report: Report) -> str:
    """The run for a page of the documentation: its figures, and the table by kind of fault."""
    took: dict[str, list[float]] = defaultdict(list)
    for outcome in report.outcomes:
        if not outcome.skipped:
            took[outcome.fault.kind].append(
                math.inf if outcome.recovered_seconds is None else outcome.recovered_seconds
            )
    figures = (
        f"`{report.replay}`, {report.took:.0f} s in all: {sentence(report).splitlines()[0]}; "
        f"{report.events} events, {report.commands} commands, of which {report.unanswered} had no answer."
    )
    lines = [
        figures,
        "",
        "| fault | made | worked again after, median s | slowest s |",
        "|---|--:|--:|--:|",
        *(
            f"| `{kind}` | {len(times)} | {statistics.median(times):.2f} | {max(times):.2f} |"
            for kind, times in sorted(took.items())
        ),
    ]
    return "\n".join(lines) + "\n"


def show(report: Report, console: Console) -> None:
    """The summary for a person."""
    table = Table(*_COLUMNS[:2], box=None, pad_edge=False)
    for title in _COLUMNS[2:]:
        table.add_column(title, justify="right")
    for row in rows(report.outcomes):
        table.add_row(*(str(cell) for cell in row))
    console.print(table)
    laws = Table("law", "examined", "problems", box=None, pad_edge=False)
    for verdict in report.verdicts:
        problems = len(verdict.problems) + verdict.hidden
        laws.add_row(
            verdict.law, str(verdict.examined), str(problems), style="" if verdict.kept else "bold red"
        )
    console.print()
    console.print(laws)
    for verdict in report.verdicts:
        for problem in verdict.problems:
            console.print(f"  {verdict.law}: {problem}", style="red", markup=False)
        if verdict.hidden:
            console.print(f"  {verdict.law}: and {verdict.hidden} more")
    for kind, why in report.unavailable.items():
        console.print(f"not made here: {kind}, because {why}", markup=False)
    console.print()
    console.print(sentence(report), markup=False)


def text(report: Report) -> str:
    """The summary as text."""
    console = Console(file=io.StringIO(), width=160, color_system=None)
    with console.capture() as captured:
        show(report, console)
    return captured.get()


def sentence(report: Report) -> str:
    """The run in one line."""
    how = "clean" if report.clean else "BROKEN"
    kept = f"\nkept: {report.kept}\nagain: {report.replay}" if report.kept else ""
    return (
        f"{how}: seed {report.seed}, {report.faults} faults in {report.seconds:g} s, "
        f"{report.submitted} jobs acknowledged, {report.completed} completed, {report.removed} removed, "
        f"{report.attempts} attempts, worked again after {report.recovered_within:g} s at most{kept}"
    )


def kinds(outcomes: list[Outcome]) -> Counter[str]:
    """How many faults of each kind were made."""
    return Counter(outcome.fault.kind for outcome in outcomes if not outcome.skipped)


def _shown(seconds: float) -> str:
    return f"{seconds:.2f}"
