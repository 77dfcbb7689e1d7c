"""
The scheduler of a Dask cluster, in a job: it publishes the services `dask` and `dashboard`, and tells its session where it is.
"""

import asyncio
import sys

from kettle.dask.credentials import CredentialsError
from kettle.dask.placement import NotInJobError, placement_of_job
from kettle.dask.programs import complain, membership_of, parser_of, set_at_signals
from kettle.dask.scheduler.program import run_scheduler

PROGRAM = "kettle.dask.scheduler"


def main() -> int:
    parser = parser_of(PROGRAM, __doc__)
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--dashboard-port", type=int, default=0, help="0: one that is free")
    options = parser.parse_args()

    async def run() -> None:
        end = asyncio.Event()
        set_at_signals(end)
        await run_scheduler(
            await membership_of(options),
            placement_of_job(),
            end,
            port=options.port,
            dashboard_port=options.dashboard_port,
        )

    try:
        asyncio.run(run())
    except (CredentialsError, NotInJobError) as error:
        complain(PROGRAM, error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
