"""condor_run: a command line as a job, with its output and its exit status here."""

import os
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.client import Client
from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood_before
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId

if TYPE_CHECKING:
    from kettle.client.events.progress import Progress

OPTIONS: Final = {
    "append": Option(takes=1, also=("a",)),
    "getenv": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "universe": Option(takes=1, also=("u",)),
}
HELP: Final = {
    "condor_run": """\
usage: condor_run [options] COMMAND

Run a command line of the shell as a job and wait for it: its output, its errors and its exit status come out here.  It is
one word in quotes, or several.  Files that it needs have to be where it runs, or be named with -a.

  -a LINE                one more line of the submit description, as -a request_memory=1024; may be repeated
  -u UNIVERSE            its universe (vanilla)
  -getenv                it has the variables of this shell
  -name SCHEDD, -pool P  whose queue

CONDOR_ARCH, CONDOR_OPSYS and CONDOR_REQUIREMENTS in the environment say which machine it needs.  When this command is
interrupted the job is removed.  After a signal the exit status is 128 and its number; if the job was removed it is 1.
""",
}
_KILLED: Final = 128


class Wanted(msgspec.Struct):
    """What was typed."""

    lines: list[str] = []
    universe: str = "vanilla"
    getenv: bool = False
    name: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Run it; the exit status of the job."""
    wanted = Wanted()
    options, command = understood_before(words, OPTIONS)
    for given in options:
        _take(wanted, given)
    if not command:
        raise WordsError("which command?  Write it behind the options, best in quotes")
    client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    with _files() as files, _interruptible():
        files["run"].write_text(
            f"#!{os.environ.get('SHELL') or '/bin/sh'}\n{' '.join(command)}\n", encoding="utf-8"
        )
        files["run"].chmod(0o700)
        status = _carried_out(client, description(files, wanted, os.environ))
        for name, stream in (("out", sys.stdout), ("error", sys.stderr)):
            stream.flush()
            if files[name].exists():
                stream.buffer.write(files[name].read_bytes())
                stream.flush()
    return status


def _take(wanted: Wanted, given: TypedOption) -> None:
    match given.name:
        case "append":
            wanted.lines.append(given.values[0])
        case "getenv":
            wanted.getenv = True
        case name:
            setattr(wanted, name, given.values[0])


def description(files: dict[str, Path], wanted: Wanted, environ: Mapping[str, str]) -> str:
    """What is submitted."""
    needs = [environ["CONDOR_REQUIREMENTS"]] if environ.get("CONDOR_REQUIREMENTS") else []
    for variable, attribute in (("CONDOR_ARCH", "Arch"), ("CONDOR_OPSYS", "OpSys")):
        if value := environ.get(variable):
            needs.append(f'{attribute} == "{value}"')
    lines = [
        f"universe = {wanted.universe}",
        f"executable = {files['run'].name}",
        f"output = {files['out'].name}",
        f"error = {files['error'].name}",
        "notification = never",
        *(["getenv = true"] if wanted.getenv else []),
        *([f"requirements = {' && '.join(f'({need})' for need in needs)}"] if needs else []),
        *wanted.lines,
        "queue",
    ]
    return "\n".join([*lines, ""])


def _carried_out(client: ShortLivedClient, text: str) -> int:
    import asyncio  # who asks what the command can do needs no event loop

    from kettle.submit import SubmitError

    async def work(pool: Client) -> int:
        await pool.connection()
        submission = asyncio.ensure_future(pool.submit(text, cwd=Path.cwd()))
        try:
            cluster = (await asyncio.shield(submission)).cluster
            progress = await _ended(pool, cluster)
        except SubmitError as error:
            raise ToolError(f"condor_run: {error}") from error
        except BaseException:
            # Who interrupts the submission cannot know whether there is a job: its answer says that.
            await pool.remove(Select(clusters=[(await submission).cluster]), "condor_run was interrupted")
            raise
        state = progress.jobs[JobId(cluster, 0)]
        if state.status == "removed":
            sys.stderr.write("condor_run: the job was removed\n")
            return 1
        if state.exit_signal is not None:
            sys.stderr.write(f"condor_run: the job was ended by signal {state.exit_signal}\n")
            return _KILLED + state.exit_signal
        return state.exit_code or 0

    return client.run(work)


async def _ended(pool: Client, cluster: int) -> "Progress":
    """How the job has ended; if it is held meanwhile, the person who waits is told so."""
    select = Select(clusters=[cluster])
    progress = await pool.wait(select, through_hold=False)
    if not progress.ended:
        [job] = await pool.jobs(select, projection=["HoldReason"]) or [{}]
        sys.stderr.write(
            f"condor_run: job {cluster}.0 is held, and waited for: {job.get('HoldReason', '?')}\n"
        )
        progress = await pool.wait(select)
    return progress


@contextmanager
def _files() -> Generator[dict[str, Path]]:
    """The files of the job in this directory, which go with the command."""
    files = {name: Path(f".condor_{name}.{os.getpid()}") for name in ("run", "out", "error")}
    try:
        yield files
    except OSError as error:
        raise ToolError(f"condor_run: {error.filename or Path.cwd()}: {error.strerror}") from error
    finally:
        for path in files.values():
            path.unlink(missing_ok=True)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """
    Do what ^C does now.

    While an event loop runs, that cancels the one task; an exception would end the connection too, by which the job is removed.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, frame)


@contextmanager
def _interruptible() -> Generator[None]:
    """
    Whatever asks the command to end is like ^C: the job goes with it.

    Where ^C is ignored, as it is for what a script starts in the background, it stays without effect; but an event loop
    then has no handler for it that could be called.
    """
    signals = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    before = [signal.signal(number, _interrupt) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
        if ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
