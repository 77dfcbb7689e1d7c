"""condor_wait: until a job event log says that jobs have ended."""

import math
import re
import sys
import time
from pathlib import Path
from typing import Final

import msgspec

from kettle.retry.deadline import Deadline
from kettle.userlog.framing import Block, UserLogFormatError
from kettle.userlog.reader import Heading, LogReader, heading
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "debug": Option(),
    "echo": Option(letters=True),
    "num": Option(takes=1),
    "status": Option(),
    "wait": Option(takes=1),
}
HELP: Final = {
    "condor_wait": """\
usage: condor_wait [options] LOG [CLUSTER[.PROC]]

Wait until all jobs that a job event log tells of have ended, or those of a cluster, or one.
The log may be of other machines, and be written in the classic form, in XML or in JSON.
The exit status is 0 then, and 1 if the time was over before.

  -num N                 until so many have ended
  -wait SECONDS          no longer than that
  -status                say who begins and ends
  -echo                  print the log as it grows
""",
}

_JOB: Final = re.compile(r"(\d+)(?:\.(\d+)(?:\.\d+)?)?")
_PAUSE_S: Final = 0.2
_SUBMITTED, _EXECUTING, _TERMINATED, _ABORTED, _FACTORY, _FACTORY_ENDED = 0, 1, 5, 9, 35, 36
_WORDS: Final = {
    _SUBMITTED: "submitted",
    _EXECUTING: "executing",
    _TERMINATED: "completed",
    _ABORTED: "removed",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    log: str = ""
    job: tuple[int, int | None] | None = None
    number: int = 0
    seconds: float | None = None
    status: bool = False
    echo: bool = False


class _Jobs(msgspec.Struct):
    """The contents of the log so far."""

    begun: set[tuple[int, int]] = set()
    ended: set[tuple[int, int]] = set()
    factories: set[int] = set()
    """Clusters from which more jobs will come."""

    @property
    def over(self) -> bool:
        return bool(self.begun | self.ended) and self.begun <= self.ended and not self.factories


def run(_name: str, words: list[str]) -> int:
    """Wait."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    if not wanted.log:
        raise WordsError("which log?  Write the name of a job event log")
    try:
        return _wait(LogReader(Path(wanted.log)), wanted)
    except UserLogFormatError as error:
        raise ToolError(f"{wanted.log} cannot be read: {error}") from error
    except OSError as error:
        raise ToolError(f"Couldn't open {wanted.log}: {error.strerror}") from error


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "" if not wanted.log:
            wanted.log = given.values[0]
        case "":
            match = _JOB.fullmatch(given.values[0])
            if match is None:
                raise WordsError(f"'{given.values[0]}' is not the id of a job: write CLUSTER or CLUSTER.PROC")
            wanted.job = (int(match[1]), int(match[2]) if match[2] is not None else None)
        case "num":
            wanted.number = whole_number(given)
        case "wait":
            wanted.seconds = float(whole_number(given))
        case "status" | "echo" as name:
            setattr(wanted, name, True)
        case _:
            pass


def _wait(log: LogReader, wanted: _Wanted) -> int:
    deadline = Deadline(math.inf if wanted.seconds is None else wanted.seconds)
    jobs = _Jobs()
    while True:
        for block in log.all():
            _read(block, jobs, wanted)
        if jobs.over or (wanted.number and len(jobs.ended) >= wanted.number):
            if not wanted.echo:
                sys.stdout.write("All jobs done.\n" if jobs.over else f"{len(jobs.ended)} jobs done.\n")
            return 0
        if deadline.passed:
            sys.stdout.write("Time expired.\n")
            return 1
        sys.stdout.flush()
        # Logs may be on file systems without notifications of changes.
        time.sleep(min(_PAUSE_S, deadline.left()))


def _read(block: Block, jobs: _Jobs, wanted: _Wanted) -> None:
    event: Heading = heading(block)
    if not _is_meant(wanted.job, event.cluster, event.proc):
        return
    _note(jobs, event.number, (event.cluster, event.proc))
    if wanted.echo:
        sys.stdout.write(block.text)
    elif wanted.status and (word := _WORDS.get(event.number)):
        sys.stdout.write(f"{event.shown} {event.cluster}.{event.proc} {word}\n")


def _is_meant(job: tuple[int, int | None] | None, cluster: int, proc: int) -> bool:
    return job is None or (job[0] == cluster and (job[1] is None or job[1] == proc or proc < 0))


def _note(jobs: _Jobs, number: int, job: tuple[int, int]) -> None:
    match number:
        case _ if number in {_SUBMITTED, _EXECUTING}:
            jobs.begun.add(job)
        case _ if number in {_TERMINATED, _ABORTED}:
            jobs.ended.add(job)
        case _ if number == _FACTORY:
            jobs.factories.add(job[0])
        case _ if number == _FACTORY_ENDED:
            jobs.factories.discard(job[0])
        case _:
            pass
