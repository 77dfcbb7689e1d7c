"""
Jobs that testify: what really ran, and whether two attempts of one job ever lived at the same time.

The log says what the system believes.  These jobs write down what happened, outside of anything that the system
manages: each run holds a lock for as long as it lives, and one that finds it taken says so.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kettle.client import JobEvent
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobAssigned, JobCompleted, JobHeld, JobRemoved, JobVacated
from kettle_wire.jobs import JobId

FACTOR = 7

_WITNESS = """\
#!/bin/sh
# witness DIRECTORY NAME SECONDS [AGAIN]: testify in DIRECTORY, leave NAME * FACTOR in result.NAME;
# live for SECONDS the first time, and for AGAIN when it runs again; for inf seconds means until DIRECTORY is open
umask 0
exec 9>>"$1/lock.$2"
flock -n 9 || echo "$2" >>"$1/overlaps"
echo "$2" >>"$1/runs"
if [ "$(grep -cx "$2" "$1/runs")" -eq 1 ]; then seconds=$3; else seconds=${4:-$3}; fi
if [ "$seconds" = inf ]; then while [ ! -e "$1/open" ]; do sleep 0.05; done; else sleep "$seconds"; fi
read -r factor <factor
echo $(($2 * factor)) >"result.$2"
echo "this is $2"
"""


class Evidence(msgspec.Struct, frozen=True):
    """Where the witnesses write, and where their input is and their output comes."""

    directory: Path
    work: Path

    def sweep(self, seconds: Sequence[float], *, again: float | None = None) -> str:
        """
        The description of one witness for each entry, which lives that long, or for `again` if it has run before.

        Those of `math.inf` seconds live until `let_go`: however slow or fast a machine is, they are there before and end after it.
        """
        script = self.work / "witness.sh"
        script.write_text(_WITNESS)
        script.chmod(0o755)
        (self.work / "factor").write_text(f"{FACTOR}\n")
        return f"""\
executable = witness.sh
arguments = {self.directory} $(Process) $(seconds) {"" if again is None else again}
transfer_input_files = factor
transfer_output_files = result.$(Process)
output = out.$(Process)
error = err.$(Process)
request_cpus = 1
request_memory = 16
request_disk = 1024
queue seconds in ({" ".join(f"{each:.2f}" for each in seconds)})
"""

    def let_go(self) -> None:
        """Have the witnesses end that live until then, those that begin later too."""
        (self.directory / "open").touch()

    async def begun(self, number: int) -> None:
        """Wait until a job says that it runs: of an attempt that is lost before that there is no evidence."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.runs()[number]:
                await asyncio.sleep(0.02)

    def runs(self) -> Counter[int]:
        """How often each job has begun."""
        return self._noted("runs")

    def overlaps(self) -> Counter[int]:
        """The jobs of which a second attempt began while the first one lived."""
        return self._noted("overlaps")

    def wrong_results(self, jobs: int) -> list[int]:
        """The jobs whose output files are not there, or not what they should be."""
        return [
            number
            for number in range(jobs)
            if f"{number * FACTOR}\n" != _text(self.work / f"result.{number}")
            or f"this is {number}\n" != _text(self.work / f"out.{number}")
        ]

    def _noted(self, name: str) -> Counter[int]:
        return Counter(int(line) for line in _text(self.directory / name).split())


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def flaws(events: Iterable[JobEvent]) -> list[str]:
    """
    What is wrong with the recorded life of one job: attempts that overlap, ends without or after the end.
    """
    running = 0
    completed = 0
    found: list[str] = []
    for recorded in events:
        if completed and not isinstance(recorded.event, JobCompleted):
            found.append(f"{type(recorded.event).__name__} after the end")
        match recorded.event:
            case JobAssigned(attempt=attempt):
                if running:
                    found.append(f"attempt {attempt} began while {running} was not over")
                running = attempt
            case JobVacated(attempt=attempt) | JobCompleted(attempt=attempt):
                completed += isinstance(recorded.event, JobCompleted)
                if attempt != running:
                    found.append(f"attempt {attempt} ended while {running or 'none'} was running")
                running = 0
            case JobHeld() | JobRemoved():
                running = 0
            case _:
                pass
    if completed != 1:
        found.append(f"completed {completed} times")
    return found


async def verified(pool: ThrowawayPool, evidence: Evidence, cluster: int, jobs: int) -> None:
    """Every job completed, once, with the right output; no two attempts overlapped; the log is sound."""
    await true_to_record(pool, evidence, cluster, jobs)
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def true_to_record(pool: ThrowawayPool, evidence: Evidence, cluster: int, jobs: int) -> None:
    """The evidence of these jobs, without a look at the whole log."""
    assert {} == evidence.overlaps()
    assert [] == evidence.wrong_results(jobs)
    assert set(range(jobs)) == set(evidence.runs())
    found = {
        proc: wrong
        for proc in range(jobs)
        if (wrong := flaws(await pool.client.events(JobId(cluster, proc))))
    }
    assert {} == found
