"""A worker of a Dask cluster, in a job whose id is its name."""

import asyncio
import gc
import sys


def main() -> int:
    # What is loaded here stays: to look through it again and again is a part of how long it takes.
    gc.disable()
    from kettle.dask.credentials import CredentialsError
    from kettle.dask.placement import NotInJobError, placement_of_job
    from kettle.dask.programs import complain, membership_of, parser_of, set_at_signals
    from kettle.dask.worker.program import DEATH_TIMEOUT_S, PROGRAM, Ended, WorkerProgram
    from kettle.dask.worker.sampling import sample_seldom

    gc.freeze()
    gc.enable()
    parser = parser_of(PROGRAM, __doc__)
    parser.add_argument(
        "--lifetime",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="it gives its data to others and ends then; 0: never",
    )
    parser.add_argument(
        "--death-timeout",
        type=float,
        default=DEATH_TIMEOUT_S,
        metavar="SECONDS",
        help="how long it waits for a scheduler",
    )
    options = parser.parse_args()

    async def run() -> Ended:
        end = asyncio.Event()
        set_at_signals(end)
        program = WorkerProgram(
            await membership_of(options),
            placement_of_job(),
            lifetime_s=options.lifetime,
            death_timeout_s=options.death_timeout,
        )
        return await program.run(end)

    sample_seldom()
    try:
        return asyncio.run(run())
    except (CredentialsError, NotInJobError) as error:
        complain(PROGRAM, error)
        return Ended.UNUSABLE


if __name__ == "__main__":
    sys.exit(main())
