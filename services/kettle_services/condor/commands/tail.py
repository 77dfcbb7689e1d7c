"""condor_tail."""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.jobs.access import STDERR, STDOUT, AttemptAccess
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import one_job
from kettle_services.condor.connections.job_access import visiting
from kettle_services.condor.errors import WordsError
from kettle_wire.codes import RefusalCode

OPTIONS: Final = {
    "auto-retry": Option(),
    "debug": Option(),
    "follow": Option(),
    "maxbytes": Option(takes=1),
    "name": Option(takes=1),
    "no-stderr": Option(),
    "no-stdout": Option(),
    "pool": Option(takes=1),
    "stderr": Option(),
    "stdout": Option(),
}
HELP: Final = {
    "condor_tail": """\
usage: condor_tail [options] CLUSTER.PROC [FILE ...]

The end of the standard output of a job that runs, or of files of its sandbox, which are named by their paths there.

  -maxbytes N            at most so many bytes of each (1024)
  -f                     go on as they grow, until the job ends
  -stderr                its standard error as well
  -no-stdout             not its standard output
  -auto-retry            wait until the job runs
  -name SCHEDD, -pool P  whose queue
""",
}
_USUAL_BYTES: Final = 1024


class _Wanted(msgspec.Struct):
    """What was typed."""

    job: str = ""
    files: list[str] = []
    stdout: bool | None = None
    stderr: bool = False
    most: int = _USUAL_BYTES
    follow: bool = False
    retry: bool = False
    name: str = ""
    pool: str = ""

    @property
    def names(self) -> list[str]:
        """The standard output where nothing else is named, or if it was asked for."""
        stdout = self.stdout is True or (self.stdout is None and not self.files)
        return [*([STDOUT] if stdout else []), *([STDERR] if self.stderr else []), *dict.fromkeys(self.files)]


def run(_name: str, words: list[str]) -> int:
    """Show the files."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if not wanted.job:
        raise WordsError("which job?  Write CLUSTER.PROC")
    names = wanted.names
    if not names:
        raise WordsError("there is nothing to show: -no-stdout goes with -stderr or a FILE")
    output = _Output(several=len(names) > 1)

    async def work(visit: AttemptAccess) -> int:
        if wanted.follow:
            await _follow(visit, names, wanted.most, output)
            return 0
        return await _show(visit, names, wanted.most, output)

    job = one_job(wanted.job)
    return visiting(
        CondorConfig(os.environ), job, work, patient=wanted.retry, pool=wanted.pool, name=wanted.name
    )


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" if not wanted.job:
            wanted.job = value
        case "":
            wanted.files.append(value)
        case "maxbytes":
            wanted.most = whole_number(given)
        case "stderr" | "no-stderr" as name:
            wanted.stderr = name == "stderr"
        case "stdout" | "no-stdout" as name:
            wanted.stdout = name == "stdout"
        case "follow":
            wanted.follow = True
        case "auto-retry":
            wanted.retry = True
        case "name" | "pool" as name:
            setattr(wanted, name, value)
        case _:
            pass


class _Output:
    """Pieces of one file, or of several, each then under its name where another one was before."""

    def __init__(self, *, several: bool) -> None:
        self._several = several
        self._last = ""

    def write(self, name: str, data: bytes) -> None:
        """At once: somebody watches."""
        if self._several and name != self._last:
            break_ = "\n" if self._last else ""
            sys.stdout.buffer.write(f"{break_}==> {name} <==\n".encode("utf-8", "surrogateescape"))
            self._last = name
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


async def _show(visit: AttemptAccess, names: list[str], most: int, output: _Output) -> int:
    """1 if nothing could be shown."""
    failed = 0
    for name in names:
        try:
            end = await visit.tail(name, most=most)
        except CommandRefusedError as error:
            if error.code != RefusalCode.UNREADABLE:
                raise
            sys.stderr.write(f"condor_tail: {error}\n")
            failed += 1
        else:
            output.write(name, end.data)
    return 1 if failed == len(names) else 0


async def _follow(visit: AttemptAccess, names: list[str], most: int, output: _Output) -> None:
    import asyncio

    try:
        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(_followed(visit, name, most, output))
    except* (ClientError, OSError) as several:
        raise several.exceptions[0] from None


async def _followed(visit: AttemptAccess, name: str, most: int, output: _Output) -> None:
    end = await visit.peek(name, offset=-most, length=0)
    offset = end.offset if most else end.size
    async for piece in visit.follow(name, offset=offset):
        output.write(name, piece.data)
