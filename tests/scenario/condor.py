"""The condor_* commands as processes: what was printed where, and the exit code."""

from pathlib import Path

from kettle.testing.commands.running import Said, execute, run
from kettle.testing.throwaway_pool import ThrowawayPool

WAITS = "executable = /bin/sleep\narguments = 100\nrequirements = false\n"
"""The beginning of a description of jobs that never run."""


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

    async def execute(self, name: str, *words: str, typed: str = "") -> Said:
        """Run one by its file, with an interpreter of its own, as a person does."""
        return await execute([str(self.place / name), *words], self.work, self.environ, typed)

    async def submitted(self, description: str, *words: str) -> int:
        """Submit; the number of the cluster, after a look at what real clients look at."""
        said = await self("condor_submit", *words, typed=description)
        assert (0, "") == (said.status, said.err), said
        first, second = said.out.splitlines()
        count, cluster = second.split(" job(s) submitted to cluster ")
        assert f"Submitting job(s){'.' * int(count)}" == first
        assert cluster.endswith(".")
        return int(cluster[:-1])
