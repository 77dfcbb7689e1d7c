"""`python -m kettle_services.worker FILE --home DIRECTORY`: what `kettle worker run` becomes."""

import argparse
import asyncio
import logging
from functools import partial
from pathlib import Path

from kettle.execution.system.linux import boottime
from kettle.pool import PoolError
from kettle.pool.joining import JoinError
from kettle.runtime import logs
from kettle_services.worker import bootstrap_file
from kettle_services.worker.domain import course
from kettle_services.worker.guard import Line, guard
from kettle_services.worker.joining import join_pool
from kettle_wire.bootstrap import Bootstrap

_log = logging.getLogger(__name__)
EXIT_FAILED = 1
EXIT_BOOTSTRAP = 2


def main() -> int:
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


def _agent(told: Bootstrap, file: Path, home: Path, began: float, line: Line) -> int:
    """The child's whole life."""
    from kettle_services.worker.agent import serve  # the guard, which stays small, needs none of it

    try:
        record = join_pool(told, home)
        bootstrap_file.remove(file)
        return asyncio.run(serve(told, home, record, course.begun(told, began), line))
    except (JoinError, PoolError) as error:
        _log.error("%s", error)
        return EXIT_FAILED


if __name__ == "__main__":
    raise SystemExit(main())
