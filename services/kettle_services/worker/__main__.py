"""`python -m kettle_services.worker FILE --home DIRECTORY`: what `kettle worker run` becomes."""

import argparse
import logging
from functools import partial
from pathlib import Path
from typing import Final

from kettle.execution.system.linux import boottime
from kettle.pool import PoolError, open_home
from kettle.runtime import logs
from kettle_services.worker import bootstrap_file
from kettle_services.worker.domain import course
from kettle_services.worker.guard import Line, guard
from kettle_wire.bootstrap import Bootstrap

_log: Final = logging.getLogger(__name__)
EXIT_FAILED: Final = 1
EXIT_BOOTSTRAP: Final = 2


def main() -> int:
    """Read the file, and be the guard of an agent."""
    parser = argparse.ArgumentParser(prog="kettle worker run")
    parser.add_argument("bootstrap", type=Path)
    parser.add_argument("--home", type=Path, required=True)
    given = parser.parse_args()
    logs.setup("worker")
    began = boottime()
    try:
        told = bootstrap_file.read(given.bootstrap)
    except bootstrap_file.BootstrapError as error:
        _log.error("%s", error)
        return EXIT_BOOTSTRAP
    agent = partial(_agent, told, given.bootstrap, given.home, began)
    return guard(agent, given.home, ends=began + told.life, shutdown=told.shutdown)


def _agent(told: Bootstrap, file: Path, place: Path, began: float, line: Line) -> int:
    """The whole life of the agent."""
    import asyncio

    from kettle.bus.ports import BusError  # the guard, which stays small, needs none of this
    from kettle.pool.joining import JoinError
    from kettle_services.worker.joining import join_pool
    from kettle_services.worker.life import serve

    try:
        home = open_home(place)
        record = join_pool(told, home, ends=began + told.life)
        bootstrap_file.remove(file)
        return asyncio.run(serve(told, home, record, course.begun(told, began), line))
    except (JoinError, PoolError, BusError) as error:
        _log.error("%s", error)
        return EXIT_FAILED


if __name__ == "__main__":
    raise SystemExit(main())
