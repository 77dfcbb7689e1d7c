"""condor_ce_trace: a job all the way through a compute entrypoint, with what each station calls it."""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.commands import ping
from kettle_services.condor.commands.ce_run import reaching
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.codes import JobStatus
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.client.client import Client
    from kettle_wire.ads.types import Ad

OPTIONS: Final = {
    "attribute": Option(takes=1, also=("a",)),
    "debug": Option(also=("d",)),
    "name": Option(takes=1),
    "pool": Option(takes=1),
}
HELP: Final = {
    "condor_ce_trace": """\
usage: condor_ce_trace [options] [HOST]

Try a compute entrypoint as a submitter would use it: whether you may submit, then a job that prints its environment, from its
submission to its output, with the route that it took and with what the batch system calls it.

  -a ATTRIBUTE=VALUE     one more line of the submit description, as -a '+queue = "long"'; may be repeated
  -d                     the ads of the job, as submitted and as routed
  -name SCHEDD, -pool P  which one; HOST stands for both

It ends with 0 when the output is there.  A job that is held, or that no route takes, ends it at once with the reason.  It waits for
CE_TRACE_ATTEMPTS seconds, a knob (600).
""",
}
_SHOWN: Final = ("RouteName", "GridResource", "GridJobId", "GridJobStatus", "RemoteHost")
"""How stations call it, in the order in which it comes to them."""
_LOOKED_AT: Final = ("JobStatus", "HoldReason", "UnroutedReason", "ExitCode", *_SHOWN)
_DESCRIPTION: Final = """\
executable = /usr/bin/env
transfer_executable = false
output = out
error = error
log = log
{lines}
queue
"""
_ATTEMPTS: Final = 600


class _Wanted(msgspec.Struct):
    """What was typed."""

    lines: list[str] = []
    debug: bool = False
    words: list[str] = []
    """Options by which commands are told which entrypoint is meant."""


def run(_name: str, words: list[str]) -> int:
    """Trace a job."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        match given.name:
            case "attribute":
                wanted.lines.append(given.values[0])
            case "debug":
                wanted.debug = True
            case "":
                if wanted.words:
                    raise WordsError(f"'{given.values[0]}' is one entrypoint too many")
                wanted.words = reaching(given.values[0])
            case option:
                wanted.words += [f"-{option}", given.values[0]]
    sys.stdout.write("Testing authorization...\n")
    if ping.run(
        "condor_ping", ["-verbose", *wanted.words, "WRITE"] if wanted.debug else [*wanted.words, "WRITE"]
    ):
        raise ToolError("condor_ce_trace: you may not submit there")
    knobs = CondorConfig(os.environ)
    places = dict(zip(wanted.words[::2], wanted.words[1::2], strict=True))
    client = client_of(knobs, pool=places.get("-pool", ""), name=places.get("-name", ""))
    seconds = knobs.number("CE_TRACE_ATTEMPTS", _ATTEMPTS)
    with TemporaryDirectory(prefix="condor_ce_trace.") as directory:
        code = client.run(lambda pool: _traced(pool, Path(directory), wanted, seconds))
        sys.stdout.write("Job output:\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(Path(directory, "out").read_bytes())
        sys.stderr.buffer.write(Path(directory, "error").read_bytes())
    if code != 0:
        how = "was ended by a signal" if code is None else f"ended with exit status {code}"
        raise ToolError(f"condor_ce_trace: the job {how}")
    return 0


async def _traced(pool: "Client", directory: Path, wanted: _Wanted, seconds: float) -> int | None:
    """
    One job, until its output is in the directory: its exit status.  Whatever is in the way, it does not stay.
    """
    import asyncio

    from kettle.submit import SubmitError

    try:
        job = await _submitted(pool, directory, wanted)
    except SubmitError as error:
        raise ToolError(f"condor_ce_trace: {error}") from error
    select = Select(jobs=[job])
    try:
        async with asyncio.timeout(seconds):
            code = await _followed(pool, job)
            await pool.spools.fetch(select)
    except BaseException as error:
        await pool.remove(select, "condor_ce_trace gave it up")
        if isinstance(error, TimeoutError):
            raise ToolError(
                f"condor_ce_trace: job {job} has not ended after {seconds:g} seconds, and is removed"
            ) from error
        raise
    if wanted.debug:
        for decision in await pool.entrypoint.decisions(job):
            _say(f"- route {decision.route or 'none'}, version {decision.version}")
            for name, value in sorted(decision.attributes.items()):
                _say(f"  {name} = {_text(value)}")
    return code


async def _submitted(pool: "Client", directory: Path, wanted: _Wanted) -> JobId:
    from kettle.client.jobs.submission import prepare
    from kettle_services.condor.printing.submissions import Queued

    text = _DESCRIPTION.format(lines="\n".join(wanted.lines))
    submission = prepare(text, cwd=directory, source="condor_ce_trace")
    _say("Submitting a job...")
    done = await pool.submit(submission, spool=True)
    await pool.spools.send(list(Queued(submission, done.cluster).ads()))
    job = JobId(done.cluster, 0)
    _say(f"- the access point {pool.pool.schedd} calls it {job}")
    if wanted.debug:
        for name, value in sorted(submission.ad.items()):
            _say(f"  {name} = {_text(value)}")
    return job


async def _followed(pool: "Client", job: JobId) -> int | None:
    """Its exit status when it has ended, None for a signal; raises ToolError for one that will not end."""
    select = Select(jobs=[job])
    told: dict[str, object] = {}
    async for progress in pool.watch(select):
        [ad] = await pool.jobs(select, projection=_LOOKED_AT) or [{}]
        _tell(ad, told)
        if ad.get("JobStatus") == JobStatus.HELD:
            raise ToolError(f"condor_ce_trace: job {job} is held: {ad.get('HoldReason', '?')}")
        if reason := ad.get("UnroutedReason"):
            raise ToolError(f"condor_ce_trace: no route takes job {job}: {reason}")
        if progress.ended:
            code = ad.get("ExitCode")
            return code if isinstance(code, int) else None
    raise ToolError(f"condor_ce_trace: job {job} is not in the queue any more")


def _tell(ad: "Ad", told: dict[str, object]) -> None:
    """What is new."""
    for name in _SHOWN:
        value = ad.get(name)
        if value is not None and told.get(name) != value:
            told[name] = value
            _say(f"- {name} is {_text(value)}")
    status = ad.get("JobStatus")
    if isinstance(status, int) and told.get("JobStatus") != status:
        told["JobStatus"] = status
        _say(f"- it is {JobStatus(status).name.lower()}")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _text(value: object) -> str:
    expression = getattr(value, "expr", None)
    return str(value) if expression is None else str(expression)
