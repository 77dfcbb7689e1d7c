"""
What a batch system runs for a job: a script for `sh` around its program.

It runs for the first job of the batch system that begins it, and for no other: a second one that was submitted by mistake ends at
once. It leaves word of how the program ended in the sandbox, which is true also where the batch system keeps no books.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle_wire.batch import BatchEnd, EndCause

OURS: Final = ".kettle"
"""The directory of the sandbox for what is not the job's own."""
_END: Final = f"{OURS}/end"
BATCH_LOG: Final = f"/{OURS}/batch.log"
"""In the sandbox: what the batch system itself prints."""
BEGUN: Final = f"{OURS}/begun"
"""The directory that the first job makes which begins the script; its number is in the file `by`."""
_NUMBER: Final = re.compile(r"[0-9][0-9A-Za-z._\[\]-]{0,100}")
"""What batch systems call jobs. A job can write what it likes there, so it is no option of a command."""
_WORD: Final = re.compile(r"(code|signal) ([0-9]{1,3}) ([0-9]{1,12}) ([0-9]{1,12})")
"""
How, with which status, from when, until when.  A job can write what it likes there, so numbers have an end.
"""
NOT_OURS: Final = 74
"""The exit status of a job that finds that another one runs for it."""
_AWAITING: Final = """\
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM
{{
    wait "$child"
    status=$?
    while kill -0 "$child" 2>/dev/null; do
        wait "$child"
        status=$?
    done
}} 2>{words}"""
_SCRIPT: Final = """\
_newline='
'
unset LC_ALL
eval "HOME=~$(id -un)"
[ -d "$HOME" ] || HOME={sandbox}
export HOME
cd {sandbox} || exit 73
number=${{SLURM_JOB_ID:-${{PBS_JOBID:-${{LSB_JOBID:-${{JOB_ID:-${{KETTLE_BATCH_ID:-$$}}}}}}}}}}
if mkdir {begun} 2>/dev/null; then
    echo "$number" >{begun}/by
elif [ "$(cat {begun}/by 2>/dev/null)" != "$number" ]; then
    exit {not_ours}
fi
rm -f {end}
began=$(date +%s)
{exports}
cd {directory} || exit 73
{program} <{stdin} >{stdout} 2>{stderr} &
{awaiting}
cd {sandbox} || exit 73
how=code
if [ "$status" -gt 128 ] && [ -s {ours}/words ]; then how=signal; fi
{{
    echo "$how $status $began $(date +%s)"
    times
}} >{end}.new && mv {end}.new {end}
exit "$status"
"""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a job runs; paths are absolute, or relative to `directory`."""

    words: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    stdin: str = "/dev/null"
    stdout: str = "/dev/null"
    stderr: str = "/dev/null"


def script(program: Program, sandbox: str) -> str:
    """The script, without directives."""
    exports = "\n".join(
        f"export {name}={_quoted(value)}"
        for name, value in program.environment.items()
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    )
    stderr = "&1" if program.stderr == program.stdout else _quoted(program.stderr)
    return _SCRIPT.format(
        sandbox=shlex.quote(sandbox),
        ours=OURS,
        begun=BEGUN,
        end=_END,
        not_ours=NOT_OURS,
        exports=exports,
        directory=_quoted(program.directory),
        program=" ".join(map(_quoted, program.words)),
        awaiting=awaiting(f"{OURS}/words"),
        stdin=_quoted(program.stdin),
        stdout=_quoted(program.stdout),
        stderr=stderr,
    )


def awaiting(words: str) -> str:
    """
    Waits for what was begun last, whose status is `status` then.  SIGTERM is passed on to it, and ends the waiting no sooner than it
    ends.  `words`: the file for what the shell itself says of its end.
    """
    return _AWAITING.format(words=words)


def _quoted(text: str) -> str:
    """
    As one word, and in one line: some batch systems read directives anywhere in a script, and no line is one that the job has written.
    """
    return shlex.quote(text).replace("\n", "'\"$_newline\"'")


def number_in(text: str) -> str:
    """
    The number of the job that has begun a script, by its own word (the file `by` of `BEGUN`); empty: there is none yet.
    """
    said = text.strip()
    return said if _NUMBER.fullmatch(said) else ""


def left(text: str) -> BatchEnd | None:
    """How a job ended by its own word (the file `.kettle/end`); None: it has left none."""
    line, *used = text.splitlines() or [""]
    if (said := _WORD.fullmatch(line)) is None:
        return None
    how, (status, began, ended) = said[1], map(int, said.groups()[1:])
    return BatchEnd(
        cause=EndCause.EXITED,
        exit_code=status if how == "code" else None,
        signal=status - 128 if how == "signal" else None,
        began=float(began),
        ended=float(ended),
        cpu=_cpu(used[-1] if used else ""),
    )


def _cpu(line: str) -> float:
    """Of the last line of `times`: user and system time of all that was waited for, as `0m1.5s 0m0.2s`."""
    found = re.findall(r"([0-9]{1,9})m([0-9]{1,2}(?:\.[0-9]{1,9})?)s", line)
    return sum(60.0 * float(minutes) + float(seconds) for minutes, seconds in found)
