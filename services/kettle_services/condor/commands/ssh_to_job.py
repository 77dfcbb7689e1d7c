"""condor_ssh_to_job."""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.jobs.access import AttemptAccess
from kettle.client.jobs.side_program import SHELL, run_beside
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood_before
from kettle_services.condor.arguments.jobs import one_job
from kettle_services.condor.connections.job_access import visiting
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "auto-retry": Option(),
    "debug": Option(),
    "keygen-options": Option(takes=1),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "remove-on-interrupt": Option(),
    "shells": Option(takes=1),
    "ssh": Option(takes=1),
    "x": Option(),
}
HELP: Final = {
    "condor_ssh_to_job": """\
usage: condor_ssh_to_job [options] CLUSTER.PROC [COMMAND ...]

A shell beside a job that runs: on its machine, as its user, in its directory, environment, control group and container.
With a command, that is given to a shell there; input, output, errors and the exit status are those of the command.
No ssh and no connection to the machine is needed.

  -auto-retry            wait until the job runs
  -name SCHEDD, -pool P  whose queue
  -shells S,S, -debug    change nothing here

  condor_ssh_to_job 12.3 'ls -l; tail -3 *.log'
  condor_ssh_to_job 12.3 tar cf - results > results.tar
""",
}
_INSTEAD: Final = {
    "keygen-options": "there are no keys: leave it out",
    "remove-on-interrupt": "leave it out, and use condor_rm",
    "ssh": "there is no ssh behind it, so scp, sftp and rsync cannot use it and no ports are forwarded: move files "
    "with a COMMAND such as tar, see condor_ssh_to_job -help",
    "x": "there is no ssh behind it, so no windows are forwarded",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    retry: bool = False
    name: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Be the program beside the job, to its end."""
    wanted = _Wanted()
    options, rest = understood_before(words, OPTIONS)
    for given in options:
        _take(wanted, given)
    if not rest:
        raise WordsError("which job?  Write CLUSTER.PROC")
    job, command = one_job(rest[0]), rest[1:]
    script = " ".join(command) if command else SHELL
    tty = not command and sys.stdin.isatty()

    async def work(visit: AttemptAccess) -> int:
        if tty:
            sys.stderr.write(f"Welcome to {visit.slot}!\n")
        return await run_beside(visit, ["sh", "-c", script], _write, tty=tty, listens=True)

    return visiting(
        CondorConfig(os.environ), job, work, patient=wanted.retry, pool=wanted.pool, name=wanted.name
    )


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "auto-retry":
            wanted.retry = True
        case "name" | "pool" as name:
            setattr(wanted, name, given.values[0])
        case "debug" | "shells":
            pass
        case refused:
            raise ToolError(f"condor_ssh_to_job: -{refused} is not carried out; {_INSTEAD[refused]}")


def _write(descriptor: int, data: bytes) -> None:
    stream = sys.stderr if descriptor == 2 else sys.stdout
    stream.buffer.write(data)
    stream.buffer.flush()
