"""The condor_* commands as processes: what was printed where, and the exit code."""

import asyncio
import os
import signal
from pathlib import Path
from typing import NamedTuple

from kettle.testing.throwaway_pool import ThrowawayPool

WITHIN_S = 60.0
WAITS = "executable = /bin/sleep\narguments = 100\nrequirements = false\n"
"""The beginning of a description of jobs that never run."""


class Said(NamedTuple):
    """What a command left: its exit code, its output, its errors."""

    status: int
    out: str
    err: str


class Condor:
    """The commands of one directory, run against one pool."""

    def __init__(self, place: Path, pool: ThrowawayPool, work: Path) -> None:
        self.place = place
        self.work = work
        self.pool = pool
        self.environ = {**pool.environ, "KETTLE_HOME": str(pool.home), "PATH": f"{place}:/usr/bin:/bin"}

    async def __call__(self, name: str, *words: str, typed: str = "", **variables: str) -> Said:
        """Run one, with a text at its standard input."""
        return await run([str(self.place / name), *words], self.work, self.environ | variables, typed)

    async def submitted(self, description: str, *words: str) -> int:
        """Submit; the number of the cluster, after a look at what real clients look at."""
        said = await self("condor_submit", *words, typed=description)
        assert (0, "") == (said.status, said.err), said
        first, second = said.out.splitlines()
        count, cluster = second.split(" job(s) submitted to cluster ")
        assert f"Submitting job(s){'.' * int(count)}" == first
        assert cluster.endswith(".")
        return int(cluster[:-1])


async def run(
    words: list[str], work: Path, environ: dict[str, str], typed: str = "", *, within_s: float = WITHIN_S
) -> Said:
    """Run a program to its end."""
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
        cwd=work,
        start_new_session=True,  # what it has started ends with it, else it would hold our pipes open
    )
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate(typed.encode())
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return Said(process.returncode or 0, out.decode(), err.decode())
