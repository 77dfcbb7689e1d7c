"""`kettle simulate check`: what a file of a simulation describes, and whether it can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kettle.terminal.quantities import counted, duration, size
from kettle_services.cli.errors import CommandError

if TYPE_CHECKING:
    import argparse

    from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Read it, and look for jobs that no host can hold."""
    from kettle_services.simulator.simulation import JobTooLargeError
    from kettle_services.simulator.simulation_file import SimulationFileError, read

    try:
        described = read(arguments.file, skip_bad=arguments.skip_bad)
        simulation = described.simulation
        simulation.check()
    except SimulationFileError as error:
        raise CommandError(str(error)) from error
    except JobTooLargeError as error:
        raise CommandError(f"{arguments.file}: {error}") from error
    platform, work = simulation.platform, simulation.workload
    asked = float((work.work * work.cores * work.nodes).sum()) / 1e6
    span = float(work.submitted[-1]) / 1e6
    if screen.as_json:
        screen.json(
            {
                "hosts": len(platform.hosts),
                "cores": platform.cores,
                "jobs": len(work),
                "users": list(work.users),
                "core_hours": asked / 3600,
                "span": span,
                "memory": simulation.memory,
                "skipped": described.skipped,
            }
        )
        return 0
    screen.say(
        f"{counted(len(platform.hosts), 'host')} with {counted(platform.cores, 'core')}; "
        f"{counted(len(work), 'job')} of {counted(len(work.users), 'user')}, submitted over {duration(span)}, "
        f"which want {asked / 3600:.4g} core hours."
    )
    if asked and platform.cores:
        screen.say(f"All cores together need {duration(asked / platform.cores)} for that at speed 1.")
    screen.say(f"It needs about {size(simulation.memory / 1024)} of memory.")
    for bad in described.skipped:
        screen.note(f"line {bad.line} is left out: {bad.why}")
    return 0
