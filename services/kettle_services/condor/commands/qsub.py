"""condor_qsub: jobs of scripts that were written for PBS or Grid Engine."""

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.client.client import Client
from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError, do_you_mean

HELP: Final = {
    "condor_qsub": """\
usage: condor_qsub [options] [SCRIPT [ARGUMENT ...]]

Submit a script as qsub of PBS or Grid Engine does; without SCRIPT it is read from standard input.  Options also stand in the
script, in lines that begin with #PBS or #$; what is typed counts more.  Its output goes to NAME.oCLUSTER and NAME.eCLUSTER.

  -N NAME                what it is called (the name of the script)
  -t FIRST[-LAST[:STEP]] a task for each number, which it finds in SGE_TASK_ID and PBS_ARRAYID
  -l RESOURCE,...        mem=2gb, file=1gb, procs=4, nodes=1:ppn=4:gpus=1, arch=, opsys=, host=
  -o PATH, -e PATH       where output and errors go: a file, or a directory for files of the usual names
  -j oe                  errors go where output goes
  -i PATH                its standard input
  -cwd, -wd DIR, -d DIR  where it runs and relative names begin: here, or there
  -b y                   SCRIPT is a command line of the shell, and no file
  -S SHELL               what carries it out ($SHELL)
  -v NAME=VALUE,..., -V  variables that it has; all of this shell
  -p N, -h               its priority; it waits on hold for condor_release
  -A GROUP               the accounting group
  -r n                   it is not run again after it has begun once
  -m a|e|n, -M ADDRESS   when a mail is sent, and to whom
  --print, --test        print the submit description; submit nothing
  -q QUEUE, -shell y, -z   change nothing here
""",
}
_TAKES: Final = frozenset(
    ["A", "b", "d", "e", "i", "j", "l", "m", "M", "N", "o", "p", "q", "r", "S", "shell", "t", "v", "wd"]
)
_ALONE: Final = frozenset(["cwd", "h", "print", "test", "V", "z"])
_ELSEWHERE: Final = {
    "hold_jid": "jobs that wait for each other are a workflow; submit this one with -h, and release it when the others are done",
    "W": "name files with transfer_input_files in a submit description",
    "c": "checkpoints are the job's own: see checkpoint_exit_code in a submit description",
    "a": "use deferral_time in a submit description",
    "I": "use condor_submit -interactive",
    "f": "give the script as it is: its #PBS and #$ lines are read",
}
_DIRECTIVE: Final = re.compile(r"#(?:PBS|\$)\s+(.*)")
_TASKS: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)[bw]?", re.IGNORECASE)
_MOST: Final = 100_000
"""Tasks of one array."""


class _Wanted(msgspec.Struct):
    """What was typed, and what the script says."""

    said: dict[str, str] = {}
    alone: set[str] = set()
    command: list[str] = []


def run(_name: str, words: list[str]) -> int:
    """Submit, or show what would be."""
    wanted = _read(words)
    script = Path(wanted.command[0]) if wanted.command else Path(_from_stdin(wanted.said.get("N", "STDIN")))
    if wanted.said.get("b", "n")[:1].lower() != "y":
        of_script = _read(list(_directives(script)))
        wanted.said = of_script.said | wanted.said
        wanted.alone |= of_script.alone
    text = description(
        wanted.said, wanted.alone, script, wanted.command[1:], shell=os.environ.get("SHELL", "/bin/sh")
    )
    if "print" in wanted.alone:
        sys.stdout.write(text)
    return 0 if "test" in wanted.alone else _submitted(text)


def _submitted(text: str) -> int:
    from kettle.submit import SubmitError

    async def sent(pool: Client) -> int:
        await pool.connection()  # a description is read beside an event loop
        return (await pool.submit(text, cwd=Path.cwd())).cluster

    try:
        cluster = client_of(CondorConfig(os.environ)).run(sent)
    except SubmitError as error:
        raise ToolError(f"condor_qsub: {error}") from error
    sys.stdout.write(f"Your job {cluster} has been submitted\n")
    return 0


def _read(words: Sequence[str]) -> _Wanted:
    """Options up to the first word that is none; raises WordsError."""
    wanted = _Wanted()
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        typed = rest.pop(0)
        name = typed.lstrip("-")
        if not name:
            break
        if name in _ELSEWHERE:
            raise ToolError(f"condor_qsub: {typed} is not carried out; {_ELSEWHERE[name]}")
        if name in _ALONE:
            wanted.alone.add(name)
        elif name not in _TAKES:
            raise WordsError(f"Unrecognized argument {typed}{do_you_mean(name, _TAKES | _ALONE, '-')}")
        elif not rest:
            raise WordsError(f"Argument {typed} requires another parameter")
        else:
            value = rest.pop(0)
            wanted.said[name] = (
                f"{wanted.said[name]},{value}" if name in {"l", "v"} and name in wanted.said else value
            )
    wanted.command = rest
    return wanted


def _directives(script: Path) -> Iterator[str]:
    try:
        lines = script.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise ToolError(f"condor_qsub: {script}: {error.strerror}") from error
    for line in lines:
        if found := _DIRECTIVE.match(line):
            yield from shlex.split(found[1], comments=True)


def _from_stdin(name: str) -> str:
    """A script that the job needs for as long as it waits."""
    import tempfile

    handle, path = tempfile.mkstemp(prefix=f"{name}_qsub.", dir=".")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(sys.stdin.read())
    return path


# -- the translation -----------------------------------------------------------------------------------------------------


def description(
    said: dict[str, str], alone: set[str], script: Path, arguments: Sequence[str], *, shell: str
) -> str:
    """The submit description of what was said; raises WordsError."""
    name = said.get("N", script.name)
    lines = [
        "universe = vanilla",
        f"batch_name = {name}",
        f"executable = {said.get('S', shell)}",
        "transfer_executable = false",
    ]
    if said.get("b", "n")[:1].lower() == "y":
        lines.append(f"arguments = {_quoted(['-c', shlex.join([str(script), *arguments])])}")
    else:
        lines += [
            f"arguments = {_quoted([script.name, *arguments])}",
            f"transfer_input_files = {script.absolute()}",
        ]
    lines += ["should_transfer_files = yes", "when_to_transfer_output = on_exit"]
    if directory := said.get("wd") or said.get("d") or (str(Path.cwd()) if "cwd" in alone else ""):
        lines.append(f"initialdir = {directory}")
    tasks = _tasks(said["t"]) if "t" in said else None
    task = ".$(Task)" if tasks is not None else ""
    output = _place(said.get("o", ""), f"{name}.o$(ClusterId){task}")
    merged = set("oe") <= set(said.get("j", "n")) or said.get("j", "n")[:1] == "y"
    lines += [
        f"output = {output}",
        f"error = {output if merged else _place(said.get('e', ''), f'{name}.e$(ClusterId){task}')}",
    ]
    lines += _plain(said, alone)
    lines += _resources(said.get("l", ""), again=said.get("r", "y")[:1].lower() != "n")
    lines += _environment(said, alone, tasks)
    lines.append(f"queue Task in ({' '.join(map(str, tasks))})" if tasks is not None else "queue")
    return "\n".join([*lines, ""])


def _quoted(words: Sequence[str]) -> str:
    """Arguments or variables in the new form."""
    each = [
        "'" + word.replace("'", "''") + "'" if re.search(r"[\s']", word) or not word else word
        for word in words
    ]
    return '"' + " ".join(each).replace('"', '""') + '"'


def _place(said: str, usual: str) -> str:
    path = said.partition(":")[2] or said  # PBS writes HOST:PATH
    if not path:
        return usual
    return f"{path.rstrip('/')}/{usual}" if Path(path).is_dir() else path


def _tasks(said: str) -> range:
    found = _TASKS.fullmatch(said)
    if found is None:
        raise WordsError(f"-t takes FIRST[-LAST[:STEP]], not '{said}'")
    first = int(found[1])
    tasks = range(first, int(found[2] or first) + 1, int(found[3] or 1) or 1)
    if not 0 < len(tasks) <= _MOST:
        raise WordsError(f"-t {said} makes {len(tasks)} tasks; there may be 1 to {_MOST}")
    return tasks


def _plain(said: dict[str, str], alone: set[str]) -> Iterator[str]:
    for option, command in {
        "i": "input",
        "p": "priority",
        "A": "accounting_group",
        "M": "notify_user",
    }.items():
        if option in said:
            yield f"{command} = {said[option]}"
    mail = said.get("m", "n")
    yield f"notification = {'never' if 'n' in mail else 'complete' if 'e' in mail else 'error'}"
    if "h" in alone:
        yield "hold = true"


def _environment(said: dict[str, str], alone: set[str], tasks: range | None) -> Iterator[str]:
    variables = [
        each if "=" in each else f"{each}={os.environ.get(each, 'True')}"
        for each in said.get("v", "").split(",")
        if each
    ]
    if tasks is not None:
        ends = {"FIRST": tasks[0], "LAST": tasks[-1], "STEPSIZE": tasks.step}
        variables += [
            "SGE_TASK_ID=$(Task)",
            "PBS_ARRAYID=$(Task)",
            *(f"SGE_TASK_{end}={value}" for end, value in ends.items()),
        ]
    if variables:
        yield f"environment = {_quoted(variables)}"
    if "V" in alone:
        yield "getenv = true"


def _resources(said: str, *, again: bool) -> Iterator[str]:
    needs = [] if again else ["NumJobStarts == 0"]
    for each in filter(None, said.split(",")):
        name, _, value = each.partition("=")
        match name:
            case "mem" | "file":
                yield f"request_{'memory' if name == 'mem' else 'disk'} = {_size(name, value)}"
            case "procs":
                yield f"request_cpus = {value}"
            case "nodes":
                yield from _nodes(value)
            case "arch" | "opsys" | "host":
                attribute = {"arch": "Arch", "opsys": "OpSys", "host": "Machine"}[name]
                needs.append(f'{attribute} == "{value}"')
            case _:
                sys.stderr.write(f"condor_qsub: WARNING: -l {each} means nothing here, and is left out\n")
    if needs:
        yield f"requirements = {' && '.join(needs)}"
    if not again:
        yield "periodic_remove = JobStatus == 1 && NumJobStarts > 0"


def _size(name: str, value: str) -> str:
    found = _SIZE.fullmatch(value)
    if found is None:
        raise WordsError(f"-l {name} takes a size as 2gb, not '{value}'")
    return f"{found[1]}{found[2].upper() or 'B'}{'' if not found[2] else 'B'}"


def _nodes(value: str) -> Iterator[str]:
    """One machine with so many cores: a job does not run on several."""
    first, *others = value.split("+")
    count, *properties = first.split(":")
    if others or (count.isdigit() and int(count) > 1):
        raise ToolError(f"condor_qsub: -l nodes={value}: a job runs on one machine; use nodes=1:ppn=CORES")
    for each in properties:
        name, _, amount = each.partition("=")
        if name in {"ppn", "gpus"}:
            yield f"request_{'cpus' if name == 'ppn' else 'gpus'} = {amount}"
    if not count.isdigit():
        raise ToolError(f"condor_qsub: -l nodes={value}: for a machine by its name use -l host={count}")
