"""`kettle simulate run`: a workload played on a platform, and the figures that it came to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.terminal.quantities import counted, duration, size
from kettle_services.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from kettle_services.cli.output.progress_bars import Bar
    from kettle_services.cli.output.screen import Cell, Screen
    from kettle_services.simulator.domain.claims import Record
    from kettle_services.simulator.invented.play import Watch
    from kettle_services.simulator.results.result import Result
    from kettle_services.simulator.results.run_description import RunDescription
    from kettle_services.simulator.simulation import Simulation
    from kettle_wire.simulations import Figures, SimulatedRun

_TITLES: Final = (
    "", "JOBS", "ENDED", "MAKESPAN", "WAIT", "MEDIAN", "P95", "SLOWDOWN", "CORE HOURS", "IN USE",
)  # fmt: skip
_KINDS: Final = {"job": int, "user": str, "cores": int, "nodes": int, "memory": int}
"""All other columns of the table of jobs are seconds."""
_OF_PERIODS: Final = ("since", "until", "settings", "step")
"""Options that say nothing of a platform and a workload."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Play it once for each seed."""
    _check(arguments)
    table: Path | None = arguments.jobs
    seeds: Sequence[int | None] = arguments.seed or [None]
    files = {"jobs": table, "events": arguments.events, "drawings": arguments.svg}
    for what, path in files.items():
        if path is not None and len(seeds) > 1:
            raise UsageError(f"the {what} of one seed can be written, and several are asked for")
    runs, skipped = _played(arguments, seeds, table, screen)
    if screen.as_json:
        screen.json({"runs": runs, "skipped": skipped})
        return 0
    for each in runs:
        _show(each, screen)
    if skipped:
        screen.note(f"{counted(skipped, 'line')} of traces that are no jobs were left out.")
    for what, path in files.items():
        if path is not None:
            screen.note(f"The {what} are in {path}.")
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Whether the options say what can be."""
    table: Path | None = arguments.jobs
    for name in _OF_PERIODS:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name} is about a recorded period: say --from log")
    if table is not None and table.suffix.lower() not in (".csv", ".parquet"):
        raise UsageError(f"{table}: a table is *.csv or *.parquet")
    if arguments.png and arguments.svg is None:
        raise UsageError("--png has drawings written as PNG, too: say where, with --svg DIRECTORY")
    if arguments.pace is not None and not arguments.pace > 0:
        raise UsageError("--pace is a number of simulated seconds in a second, more than 0")


def _played(
    arguments: argparse.Namespace, seeds: Sequence[int | None], table: Path | None, screen: Screen
) -> tuple[list[SimulatedRun], int]:
    from kettle.archive import ArchiveError
    from kettle_services.cli.output.progress_bars import bars
    from kettle_services.cli.simulation.drawing import draw
    from kettle_services.simulator.simulation import JobTooLargeError
    from kettle_services.simulator.simulation_file import SimulationFileError, read
    from kettle_wire.simulations import SimulatedRun

    runs: list[SimulatedRun] = []
    skipped = 0
    with bars(screen, "jobs") as bar:
        for number, seed in enumerate(seeds, 1):
            watch = _watch(arguments, number, len(seeds), bar, screen)
            try:
                described = read(arguments.file, seed=seed, skip_bad=arguments.skip_bad)
                _tell_memory(described.simulation, screen)
                watch(0, len(described.simulation.workload))
                result = _result(described.simulation, arguments, bar, watch)
            except SimulationFileError as error:
                raise CommandError(str(error)) from error
            except JobTooLargeError as error:
                raise CommandError(f"{arguments.file}: {error}; nothing was simulated") from error
            except ArchiveError as error:
                raise CommandError(str(error)) from error
            skipped = len(described.skipped)
            users = {user: result.figures(user) for user in described.simulation.workload.users}
            members = described.simulation.members
            groups = {name: result.figures(*together) for name, together in members.items()}
            runs.append(SimulatedRun(seed=seed, all=result.figures(), users=users, groups=groups))
            if table is not None:
                _write(table, result)
            if arguments.svg is not None:
                draw(arguments.svg, result, png=arguments.png)
    return runs, skipped


def _tell_memory(simulation: Simulation, screen: Screen) -> None:
    """Before it begins, if this machine may have too little for it."""
    needed, available = simulation.memory, _available()
    if available is not None and needed > available:
        screen.note(
            f"It needs about {size(needed / 1024)} of memory, and this machine has {size(available / 1024)} left."
        )


def _available() -> int | None:
    """Bytes that programs can still have, by the kernel; None: it does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = next((line.split() for line in lines if line.startswith("MemAvailable:")), None)
    return int(found[1]) * 1024 if found else None


def _watch(arguments: argparse.Namespace, number: int, runs: int, bar: Bar, screen: Screen) -> Watch:
    """What is told how far one run is."""
    from kettle_wire.simulations import SimulationProgress

    def lines(ended: int, jobs: int) -> None:
        line = SimulationProgress(run=number, runs=runs, ended=ended, jobs=jobs)
        print(msgspec.json.encode(line).decode(), file=screen.err, flush=True)

    def bars(ended: int, jobs: int) -> None:
        bar(f"run {number} of {runs}" if runs > 1 else "simulated", ended, jobs)

    return lines if arguments.progress else bars


def _result(simulation: Simulation, arguments: argparse.Namespace, bar: Bar, watch: Watch) -> Result:
    events: Path | None = arguments.events
    if events is None and arguments.pace is None:
        return simulation.run(watch=watch)
    if simulation.rules is None:
        option = "--pace" if events is None else "--events"
        raise UsageError(
            f'{option} needs a file with model = "kettle": there are no events in the model wrench'
        )
    from kettle_services.simulator.domain.claims import forget
    from kettle_services.simulator.results.recorded_events import RecordedEvents

    if events is None:
        return simulation.run(_paced(simulation, arguments.pace, bar, forget))
    with RecordedEvents(events, _described(simulation, arguments.file)) as recorded:
        if arguments.pace is None:
            return simulation.run(recorded, watch)
        return simulation.run(_paced(simulation, arguments.pace, bar, recorded))


def _described(simulation: Simulation, file: Path) -> RunDescription:
    """What lies beside the events."""
    from hashlib import sha256

    from kettle import VERSION
    from kettle_services.simulator.checked_file import CheckedFile
    from kettle_services.simulator.results.run_description import RunDescription
    from kettle_services.simulator.simulation_file import RULES, SimulationFileError

    read = CheckedFile(file, SimulationFileError)
    return RunDescription(
        kettle=VERSION,
        file=file.name,
        sha256=sha256(read.text.encode()).hexdigest(),
        seed=simulation.seed,
        rules={name: said for name, said in read.tables().items() if name in RULES},
    )


def _paced(simulation: Simulation, pace: float, bar: Bar, record: Record) -> Record:
    """What waits before each event until it is time, and shows how many jobs have ended."""
    from kettle_services.simulator.pacing import Paced

    jobs = len(simulation.workload)

    def watch(at: int, running: int, ended: int) -> None:
        bar(f"{duration(at / 1e6)}, {counted(running, 'job')} running", ended, jobs)

    return Paced(pace, watch, record=record)


def _show(each: SimulatedRun, screen: Screen) -> None:
    titles: tuple[str, ...] = _TITLES[1:]
    shown = {**each.users, **{f"<{name}>": figures for name, figures in each.groups.items()}}
    rows: list[list[Cell]] = [_row(name, figures) for name, figures in shown.items()]
    if len(each.users) > 1:
        rows.append(_row("all", each.all))
    if each.all.lost_core_hours:
        titles = (*titles, "LOST HOURS")
        for row, figures in zip(rows, [*shown.values(), each.all], strict=False):
            row.append(f"{figures.lost_core_hours:.4g}")
    title = "USER" if each.seed is None else f"SEED {each.seed}"
    screen.table((title, *titles), rows, right=frozenset(titles))
    if each.all.cost is not None:
        screen.note(f"The hosts cost {each.all.cost:.4g}.")
    if each.all.ended < each.all.jobs:
        screen.note(f"{counted(each.all.jobs - each.all.ended, 'job')} never ended.")


def _row(name: str, figures: Figures) -> list[Cell]:
    return [
        name, figures.jobs, figures.ended, duration(figures.makespan),
        _span(figures.wait_mean), _span(figures.wait_median), _span(figures.wait_p95),
        "-" if figures.slowdown_mean is None else f"{figures.slowdown_mean:.2f}",
        f"{figures.core_hours:.4g}", f"{figures.utilisation:.1%}",
    ]  # fmt: skip


def _span(seconds: float | None) -> str:
    return "-" if seconds is None else duration(seconds)


def _write(path: Path, result: Result) -> None:
    from kettle_services.cli.output import exports

    columns: dict[str, Any] = {
        name: column if isinstance(column, list) else column.tolist() for name, column in result.jobs.items()
    }
    kinds: dict[str, type] = {name: _KINDS.get(name, float) for name in columns}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    make = exports.as_csv if path.suffix.lower() == ".csv" else exports.as_parquet
    exports.write(path, make(kinds, rows))
