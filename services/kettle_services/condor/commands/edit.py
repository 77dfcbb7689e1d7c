"""condor_qedit and condor_prio: attributes of jobs in the queue."""

import os
import re
import sys
from collections.abc import Iterable
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig, user_identity
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, understood_before
from kettle_services.condor.arguments.jobs import JobSelection
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Acted, Select

_WHOSE: Final = {
    "debug": Option(),
    "name": Option(takes=1, also=("n",)),
    "pool": Option(takes=1),
}
OPTIONS: Final = {
    "condor_qedit": _WHOSE | {"constraint": Option(takes=1), "owner": Option(takes=1)},
    "condor_prio": _WHOSE | {"all": Option(also=("a",)), "priority": Option(takes=1, also=("p",))},
}
HELP: Final = {
    "condor_qedit": """\
usage: condor_qedit [options] {CLUSTER | CLUSTER.PROC | OWNER | -constraint EXPRESSION} NAME VALUE [NAME VALUE ...]
       condor_qedit [options] {CLUSTER | CLUSTER.PROC | OWNER | -constraint EXPRESSION} NAME=VALUE ...

Give attributes of jobs in the queue other values.  A value is an expression: a string has quotes of its own.  What a job
that runs has begun with stays until its next run.

  -name SCHEDD, -pool P  whose queue
""",
    "condor_prio": """\
usage: condor_prio {-p N | +N | -N} [options] {ID|USER ... | -a}

Set or change the priority of jobs in the queue: of the jobs of one person those with more come first.

  -p N                   the priority, replacing the earlier one
  +N, -N                 so much more or less than before
  -a                     of all of your jobs
  -name SCHEDD, -pool P  whose queue
""",
}

_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CHANGE: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)\s*(.*)", re.DOTALL)
_STEP: Final = re.compile(r"[+-]\d{1,9}", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d{1,9}", re.ASCII)


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    words: list[str] = []
    everything: bool = False
    priority: str = ""
    name: str = ""
    pool: str = ""


def run(name: str, words: list[str]) -> int:
    """Edit the jobs."""
    return _prio(words) if name == "condor_prio" else _qedit(words)


def _qedit(words: list[str]) -> int:
    wanted, rest = _edit_of(words)
    changes = _changes(rest)
    if not changes or not wanted.chosen.anything:
        raise WordsError(
            "which jobs, and what is to be changed?  Write CLUSTER, CLUSTER.PROC or a user, then NAME VALUE"
        )
    attributes = {name: _value(name, text) for name, text in changes}
    acted = _edited(wanted, attributes, 0)
    done = sum(one.outcome in {"done", "already_done"} for one in acted.outcomes)
    for one in acted.outcomes:
        if one.outcome == "denied":
            sys.stderr.write(f"Permission denied to edit job {one.job}\n")
    _warn(acted)
    if not done:
        for name in attributes:
            sys.stderr.write(f'Failed to set attribute "{name}": no matching job could be changed\n')
        return 1
    for name in attributes:
        sys.stdout.write(f'Set attribute "{name}" for {done} matching job{"s" * (done != 1)}.\n')
    return 0


def _edit_of(words: list[str]) -> tuple[_Wanted, list[str]]:
    """
    Which jobs, and the names and values as they were typed: options stand before them, for a value may begin with a dash.
    """
    options = OPTIONS["condor_qedit"]
    given, rest = understood_before(words, options)
    wanted = _wanted(given)
    if not wanted.chosen.anything and rest:
        wanted.chosen.take(rest[0])
        more, rest = understood_before(rest[1:], options)
        _add(wanted, more)
    return wanted, rest


def _warn(acted: Acted) -> None:
    """
    HTCondor's factories would take edits over: here jobs that are not made yet come as they were submitted.
    """
    for one in acted.factories:
        sys.stderr.write(
            f"WARNING: {one.unmade} job(s) of cluster {one.cluster} are still to be made, and will come as submitted\n"
        )


def _changes(words: list[str]) -> list[tuple[str, str]]:
    """NAME=VALUE words, or names and values in turn."""
    if words and all(_CHANGE.fullmatch(word) for word in words):
        return [(match[1], match[2]) for word in words if (match := _CHANGE.fullmatch(word))]
    if len(words) % 2 or not all(_NAME.fullmatch(name) for name in words[::2]):
        raise WordsError("what is to be changed?  Write NAME VALUE, or NAME=VALUE, as in RequestMemory=2048")
    return list(zip(words[::2], words[1::2], strict=True))


def _value(name: str, text: str) -> Scalar:
    from kettle.submit.errors import PlacelessError
    from kettle.submit.expressions import scalar

    try:
        return scalar(text)
    except PlacelessError as error:
        raise WordsError(f"the value of {name}, '{text}', cannot be read: {error}") from error


def _prio(words: list[str]) -> int:
    steps = [word for word in words if _STEP.fullmatch(word) and not _follows_p(words, word)]
    wanted = _wanted(understood([word for word in words if word not in steps], OPTIONS["condor_prio"]))
    for word in wanted.words:
        wanted.chosen.take(word)
    if len(steps) + bool(wanted.priority) != 1:
        raise WordsError("which priority?  Write -p N, +N or -N once")
    if not wanted.chosen.anything and not wanted.everything:
        raise WordsError("which jobs?  Write CLUSTER, CLUSTER.PROC, a user, or -a")
    if wanted.priority and not _NUMBER.fullmatch(wanted.priority):
        raise WordsError(f"'{wanted.priority}' is not a priority: write a number")
    attributes: Ad = {"JobPrio": int(wanted.priority)} if wanted.priority else {}
    acted = _edited(wanted, attributes, int(steps[0]) if steps else 0)
    _warn(acted)
    status = 1
    for one in acted.outcomes:
        if one.outcome in {"done", "already_done"}:
            status = 0
        else:
            why = "not found" if one.outcome == "not_found" else f"cannot be changed ({one.outcome})"
            sys.stderr.write(f"Job {one.job} {why}\n")
    if not acted.outcomes:
        raise ToolError("condor_prio: no job in the queue is meant")
    return status


def _follows_p(words: list[str], word: str) -> bool:
    at = words.index(word)
    return at > 0 and words[at - 1].lower() in {"-p", "-priority"}


def _wanted(typed: Iterable[TypedOption]) -> _Wanted:
    wanted = _Wanted(JobSelection())
    _add(wanted, typed)
    return wanted


def _add(wanted: _Wanted, typed: Iterable[TypedOption]) -> None:
    for given in typed:
        match given.name:
            case "":
                wanted.words.append(given.values[0])
            case "constraint":
                wanted.chosen.require(given.values[0])
            case "owner":
                wanted.chosen.take(given.values[0])
            case "all":
                wanted.everything = True
            case "name" | "pool" | "priority" as name:
                setattr(wanted, name, given.values[0])
            case _:
                pass


def _edited(wanted: _Wanted, attributes: Ad, add_to_priority: int) -> Acted:
    client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    select = Select(owners=[user_identity(client.pool)]) if wanted.everything else wanted.chosen.select()
    return client.run(lambda pool: pool.edit_jobs(select, attributes, add_to_priority=add_to_priority))
