"""
`kettle simulate plot`: drawings of a run whose jobs were kept as a table, or of a file that is played for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kettle_services.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from kettle_services.cli.output.screen import Screen
    from kettle_services.simulator.results.result import Result

_TABLES: Final = (".csv", ".parquet")


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read or play, and draw."""
    from kettle_services.cli.simulation.drawing import draw

    directory: Path = arguments.directory
    source: Path = arguments.file
    if arguments.cores is not None and arguments.cores < 1:
        raise UsageError("--cores is a whole number from 1 on")
    if source.suffix.lower() in _TABLES:
        result = _kept(source, arguments.cores)
    elif arguments.cores is not None:
        raise UsageError("--cores is for a table of jobs: a file of a simulation says what hosts it has")
    else:
        result = _played(source, arguments.seed, skip_bad=arguments.skip_bad)
    names = [str(path) for path in draw(directory, result, png=arguments.png)]
    if screen.as_json:
        screen.json({"drawings": names})
        return 0
    for name in names:
        screen.say(name)
    return 0


def _kept(path: Path, cores: int | None) -> Result:
    from kettle_services.simulator.results.job_tables import JobTableError, read_jobs

    try:
        return read_jobs(path, cores=cores)
    except JobTableError as error:
        raise CommandError(str(error)) from error


def _played(path: Path, seed: int | None, *, skip_bad: bool) -> Result:
    from kettle_services.simulator.simulation import JobTooLargeError
    from kettle_services.simulator.simulation_file import SimulationFileError, read

    try:
        return read(path, seed=seed, skip_bad=skip_bad).simulation.run()
    except SimulationFileError as error:
        raise CommandError(str(error)) from error
    except JobTooLargeError as error:
        raise CommandError(f"{path}: {error}; nothing was simulated") from error
