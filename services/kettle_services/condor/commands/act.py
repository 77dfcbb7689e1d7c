"""
condor_rm, condor_hold, condor_release, condor_suspend, condor_continue and condor_vacate_job: they differ in a few words.

Ids make one group, each cluster, each person and a condition one of its own; the exit code is 0 if something was done in
each group.
"""

import os
import sys
from typing import Final, NamedTuple

import msgspec

from kettle.client.connections.condor_config import CondorConfig, user_identity
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.jobs import JobSelection, both
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import WordsError
from kettle_wire.commands.queue import Acted, Action, JobOutcome, Select


class Deed(NamedTuple):
    """What a command does, and the words for it."""

    action: Action
    done: str
    verb: str
    """In `Permission denied to ...` and `Couldn't find/... all jobs`."""
    already: str
    wrong: str
    """The message for a job whose status does not allow it."""


DEEDS: Final = {
    "condor_rm": Deed(
        "remove", "marked for removal", "remove", "already marked for removal", "already marked for removal"
    ),
    "condor_rm -forcex": Deed(
        "remove_x",
        "removed locally (remote state unknown)",
        "remove",
        "already marked for forced removal",
        "not in `X' state to be forcibly removed",
    ),
    "condor_hold": Deed("hold", "held", "hold", "already held", "already held"),
    "condor_release": Deed(
        "release", "released", "release", "not held to be released", "not held to be released"
    ),
    "condor_suspend": Deed(
        "suspend", "suspended", "suspend", "already suspended", "not running to be suspended"
    ),
    "condor_continue": Deed(
        "continue", "continued", "continue", "already running", "not running to be continued"
    ),
    "condor_vacate_job": Deed("vacate", "vacated", "vacate", "already vacating", "not running to be vacated"),
    "condor_vacate_job -fast": Deed(
        "vacate_fast", "fast-vacated", "fast-vacate", "already vacating", "not running to be fast-vacated"
    ),
}
"""By command; with an option that makes it another deed."""

OPTIONS: Final = {
    "all": Option(),
    "constraint": Option(takes=1),
    "debug": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "reason": Option(takes=1),
}
_OWN: Final = {
    "condor_rm": {"forcex": Option()},
    "condor_hold": {"subcode": Option(takes=1)},
    "condor_vacate_job": {"fast": Option()},
}

_LARGEST: Final = 2**31 - 1

_HELP: Final = """\
usage: {name} [options] ID|USER ...

{What}: those that are named as CLUSTER.PROC, as CLUSTER, or by whom they belong to.

  -constraint EXPRESSION  those for whose ads it is true; of what was named only those
  -all                    all of yours
  -reason TEXT            goes on record
  -name SCHEDD, -pool P   whose queue
{more}"""
_MORE: Final = {
    "condor_hold": "  -subcode N              goes on record, and is HoldReasonSubCode\n",
    "condor_rm": "  -forcex                 drop jobs that are marked for removal, whatever became of them on their machines\n",
    "condor_vacate_job": "  -fast                   without time to end by themselves\n",
}
_WHAT: Final = {
    "condor_rm": "Remove jobs from the queue",
    "condor_hold": "Stop jobs, and keep them from running until condor_release",
    "condor_release": "Let held jobs run again",
    "condor_suspend": "Suspend running jobs on their machines",
    "condor_continue": "Continue suspended jobs",
    "condor_vacate_job": "Make running jobs leave their machines and wait for another",
}
HELP: Final = {
    name: _HELP.format(name=name, What=what, more=_MORE.get(name, "")) for name, what in _WHAT.items()
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    everything: bool = False
    option: str = ""
    reason: str = ""
    subcode: int = 0
    name: str = ""
    pool: str = ""


class _Group(NamedTuple):
    """Jobs that are reported together."""

    select: Select
    called: str
    """As in `All jobs in cluster 5`; empty: each by its id."""


def run(name: str, words: list[str]) -> int:
    """Carry out the action, and print the result for each group."""
    wanted = _Wanted(JobSelection())
    for given in understood(words, OPTIONS | _OWN.get(name, {})):
        _take(wanted, given)
    if not wanted.chosen.anything and not wanted.everything:
        raise WordsError(
            "You did not specify any jobs: write CLUSTER, CLUSTER.PROC, a user, -constraint or -all"
        )
    deed = DEEDS[f"{name} -{wanted.option}" if wanted.option else name]
    client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    status = 0
    for group in _groups(wanted, client):
        status |= _told(_done(client, group, deed, wanted), group, deed, wanted)
    return status


def _done(client: ShortLivedClient, group: _Group, deed: Deed, wanted: _Wanted) -> Acted:
    return client.run(lambda pool: pool.act(deed.action, group.select, wanted.reason, subcode=wanted.subcode))


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            wanted.chosen.take(given.values[0])
        case "constraint":
            wanted.chosen.require(given.values[0])
        case "all":
            wanted.everything = True
        case "reason" | "name" | "pool" as name:
            setattr(wanted, name, given.values[0])
        case "subcode":
            wanted.subcode = _subcode(given)
        case "fast" | "forcex":
            wanted.option = given.name
        case _:
            pass


def _subcode(given: TypedOption) -> int:
    try:
        subcode = int(given.values[0])
    except ValueError:
        subcode = _LARGEST + 1
    if abs(subcode) > _LARGEST:
        raise WordsError(f"Argument -subcode requires a number, not '{given.values[0]}'")
    return subcode


def _groups(wanted: _Wanted, client: ShortLivedClient) -> list[_Group]:
    """
    What was named; a condition is one more for each cluster and each person, and for ids that they be met.
    """
    chosen, condition = wanted.chosen, wanted.chosen.constraint
    groups: list[_Group] = []
    if chosen.jobs:
        groups.append(_Group(Select(jobs=chosen.jobs, constraint=condition), ""))
    for cluster in chosen.clusters:
        called = f"in cluster {cluster}"
        groups.append(_group(Select(clusters=[cluster]), called, f"ClusterId == {cluster}", condition))
    for owner in chosen.owners:
        called = f'of user "{owner}"'
        groups.append(_group(Select(owners=[owner]), called, f'Owner == "{owner}"', condition))
    if groups:
        return groups
    mine = [user_identity(client.pool)] if wanted.everything else []
    called = f"matching constraint ({condition})" if condition else ""
    return [_Group(Select(owners=mine, constraint=condition), called or "*")]


def _group(select: Select, called: str, meant: str, condition: str) -> _Group:
    if not condition:
        return _Group(select, called)
    narrowed = msgspec.structs.replace(select, constraint=condition)
    return _Group(narrowed, f"matching constraint ({both(meant, condition)})")


def _told(acted: Acted, group: _Group, deed: Deed, wanted: _Wanted) -> int:
    """Say it; 1 if nothing was done."""
    done = any(run.outcome == "done" for run in acted.runs) or any(
        one.outcome == "done" for one in acted.factories
    )
    if not group.called:
        said = {one.job: one for one in acted.outcomes}
        for job in group.select.jobs:
            _tell(said.get(job) or JobOutcome(job, "not_found"), deed)
        return 0 if done else 1
    what = "" if group.called == "*" else f" {group.called}"
    if done:
        sys.stdout.write(f"All jobs{what} have been {deed.done}\n")
        return 0
    sys.stderr.write(f"Couldn't find/{deed.verb} all jobs{what}\n")
    return 0 if wanted.everything and not acted.runs else 1


def _tell(one: JobOutcome, deed: Deed) -> None:
    match one.outcome:
        case "done":
            sys.stdout.write(f"Job {one.job} {deed.done}\n")
        case "not_found":
            sys.stderr.write(f"Job {one.job} not found\n")
        case "denied":
            sys.stderr.write(f"Permission denied to {deed.verb} job {one.job}\n")
        case "already_done":
            sys.stderr.write(f"Job {one.job} {deed.already}\n")
        case _:
            sys.stderr.write(f"Job {one.job} {deed.wrong}\n")
