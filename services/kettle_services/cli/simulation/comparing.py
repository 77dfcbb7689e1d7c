"""`kettle simulate compare`: several files over the same seeds, and what makes a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.terminal.quantities import counted, duration
from kettle_services.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kettle_services.cli.output.screen import Cell, Screen
    from kettle_services.simulator.results.differences import Difference
    from kettle_wire.simulations import Figures

_TITLES: Final = ("FIGURE", "FIRST", "THIS", "DIFFERENCE", "95% WITHIN", "RELATIVE", "")
_WORDS: Final = {
    "ended": "jobs that ended",
    "wait_mean": "mean wait",
    "wait_median": "median wait",
    "wait_p95": "95% of the waits",
    "slowdown_mean": "slowdown",
    "makespan": "makespan",
    "utilisation": "cores in use",
}
_SHOWN: Final = 5
_PLAIN: Final = frozenset({"ended", "slowdown_mean", "utilisation"})
_MAIN: Final = ("wait_mean", "makespan")
"""What the sentence at the end is about: the first of these in which anything differs."""


class Compared(msgspec.Struct, frozen=True):
    """One file beside the first."""

    file: str
    changes: list[str]
    differences: list[Difference]


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Play all files with each seed."""
    files: list[Path] = arguments.files
    if len(files) < 2:
        raise UsageError("a comparison needs two files at least")
    if arguments.seeds < 1:
        raise UsageError("--seeds is a whole number from 1 on")
    compared = _compared(files, arguments, screen)
    if screen.as_json:
        screen.json({"first": str(files[0]), "seeds": arguments.seeds, "compared": compared})
        return 0
    for each in compared:
        _show(each, files[0], screen)
    screen.say(verdict(compared))
    return 0


def _compared(files: Sequence[Path], arguments: argparse.Namespace, screen: Screen) -> list[Compared]:
    from kettle_services.cli.output.progress_bars import bars
    from kettle_services.simulator.checked_file import CheckedFile
    from kettle_services.simulator.results.differences import changed, differences
    from kettle_services.simulator.simulation_file import SimulationFileError

    figures: list[list[Figures]] = []
    total = len(files) * arguments.seeds
    with bars(screen, "runs") as bar:
        for file in files:
            figures.append([])
            for seed in range(1, arguments.seeds + 1):
                bar("simulated", sum(map(len, figures)), total)
                figures[-1].append(_played(file, seed, arguments.user, skip_bad=arguments.skip_bad))
    tables = [CheckedFile(file, SimulationFileError).tables() for file in files]
    return [
        Compared(str(file), changed(tables[0], said), differences(figures[0], mine))
        for file, said, mine in zip(files[1:], tables[1:], figures[1:], strict=True)
    ]


def _played(file: Path, seed: int, user: str, *, skip_bad: bool) -> Figures:
    from kettle_services.simulator.checked_file import closest
    from kettle_services.simulator.simulation import JobTooLargeError
    from kettle_services.simulator.simulation_file import SimulationFileError, read

    try:
        simulation = read(file, seed=seed, skip_bad=skip_bad).simulation
        users = simulation.workload.users
        if user and user not in users:
            raise UsageError(
                f"{file}: no job is of {user}{closest(user, users)}; {', '.join(users[:_SHOWN])}"
            )
        return simulation.run().figures(user)
    except SimulationFileError as error:
        raise CommandError(str(error)) from error
    except JobTooLargeError as error:
        raise CommandError(f"{file}: {error}; nothing was compared") from error


def _show(each: Compared, first: Path, screen: Screen) -> None:
    screen.say(f"{each.file}, compared with {first}: {'; '.join(each.changes) or 'the same'}")
    rows = [_row(difference) for difference in each.differences]
    screen.table(_TITLES, rows, right=frozenset(_TITLES[1:6]))
    screen.say()


def _row(each: Difference) -> list[Cell]:
    written = _writer(each.measure)
    sign = "-" if each.difference < 0 else "+" if each.difference > 0 else ""
    return [
        _WORDS[each.measure],
        written(each.first),
        written(each.second),
        f"{sign}{written(abs(each.difference))}",
        "-" if each.margin is None else written(each.margin),
        "-" if each.relative is None else f"{each.relative:+.1%}",
        "" if each.is_beyond_chance else "may be chance",
    ]


def _writer(measure: str) -> Callable[[float], str]:
    return (
        (lambda value: f"{value:.6g}" if measure == "ended" else f"{value:.3g}")
        if measure in _PLAIN
        else duration
    )


def verdict(compared: Sequence[Compared]) -> str:
    """Which of the files made most of a difference, in one sentence."""
    for measure in _MAIN:
        told = [
            (each, difference)
            for each in compared
            for difference in each.differences
            if difference.measure == measure and difference.is_beyond_chance
        ]
        if told:
            each, most = max(told, key=lambda one: abs(one[1].difference))
            way = "less" if most.difference < 0 else "more"
            part = "" if most.relative is None else f" ({abs(most.relative):.0%})"
            changes = counted(len(each.changes), "change") if len(each.changes) != 1 else each.changes[0]
            return (
                f"What matters most is {each.file} ({changes}): {_WORDS[measure]} is {duration(abs(most.difference))}"
                f"{part} {way}, give or take {duration(most.margin or 0.0)}, over {counted(most.seeds, 'seed')}."
            )
    seeds: Any = max((each.seeds for one in compared for each in one.differences), default=0)
    if seeds < 2:
        return "One seed does not tell a difference from chance: --seeds 10 plays ten."
    return f"Over {counted(seeds, 'seed')}, neither waits nor the makespan differ by more than chance."
