"""
What `hold`, `release`, `rm`, `vacate`, `suspend`, `continue` and `ce unroute` have in common: they differ in one word.
"""

import argparse
from collections import Counter
from collections.abc import Mapping
from typing import Final

from kettle.client import Client, Select
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import job_options, json_option, pool_options, selection, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.queue import (
    Acted,
    Action,
    FactoryOutcome,
    JobOutcome,
    Outcome,
    OutcomeRun,
    outcomes_of,
)

_LISTED = 20
_PAST: Final[Mapping[Action, str]] = {
    "hold": "held",
    "release": "released",
    "remove": "removed",
    "remove_x": "removed locally (remote state unknown)",
    "vacate": "asked to leave its machine",
    "vacate_fast": "asked to leave its machine at once",
    "suspend": "is being suspended",
    "continue": "is being continued",
    "unroute": "waits for a route",
}
_WRONG_STATUS: Final[Mapping[Action, str]] = {
    "hold": "cannot be held",
    "release": "is not held",
    "remove": "cannot be removed",
    "remove_x": "cannot be removed by force before it is removed",
    "vacate": "is on no machine",
    "vacate_fast": "is on no machine",
    "suspend": "cannot be suspended",
    "continue": "is not suspended by anybody",
    "unroute": "has a claim already, or is over: kettle hold has it stop, then it can be taken off its route",
}


def act_arguments(parser: argparse.ArgumentParser, *, verb: str) -> None:
    """What they all take."""
    job_options(parser, verb=verb)
    parser.add_argument("--all", action="store_true", help="all of your jobs")
    parser.add_argument("--reason", default="", metavar="TEXT", help="goes on record")
    json_option(parser)
    pool_options(parser)


def act(arguments: argparse.Namespace, screen: Screen, action: Action) -> int:
    """Carry out the action, and print the result for each job; returns 1 if it was possible for none."""
    select = selection(arguments)
    if not (select.jobs or select.clusters or select.owners or select.constraint or arguments.all):
        raise UsageError("which jobs?  Name them by id, --jobset, --owner or --constraint, or say --all")
    if arguments.all and (arguments.ids or select.owners):
        raise UsageError("--all is all of your jobs: name others by id or --owner, without it")

    async def do(pool: Client) -> Acted:
        # A set is somebody's: others may have one of the same name.
        own = arguments.all or (arguments.jobset and not (arguments.ids or select.owners))
        mine = Select(owners=[pool.pool.user], constraint=select.constraint) if own else select
        return await pool.act(action, mine, arguments.reason)

    acted = with_pool(arguments, do)
    if screen.as_json:
        screen.json(
            [{"job": str(one.job), "outcome": one.outcome, "status": one.status} for one in acted.outcomes]
            + [
                {"cluster": one.cluster, "outcome": one.outcome, "unmade": one.unmade}
                for one in acted.factories
            ]
        )
    else:
        _tell(acted.runs, action, screen)
        for factory in acted.factories:
            _tell_factory(factory, action, screen)
    counts: Counter[Outcome] = Counter(run.outcome for run in acted.runs)
    counts.update(one.outcome for one in acted.factories)
    if counts["done"] or counts["already_done"]:
        return 0
    if not (acted.runs or acted.factories):
        what = " ".join(arguments.ids)
        raise CommandError(
            f"no job in the queue matches {what}; if it has ended, it is in: kettle history {what}"
            if what
            else "no job in the queue matches the selection; see what is there with: kettle q --all-users"
        )
    return 1


def _tell(runs: list[OutcomeRun], action: Action, screen: Screen) -> None:
    for outcome, word in (("done", ""), ("already_done", "already ")):
        group = [run for run in runs if run.outcome == outcome]
        number = sum(run.count for run in group)
        if number > _LISTED:
            screen.say(f"{counted(number, 'job')} {word}{_PAST[action]}.")
        else:
            for one in outcomes_of(group):
                screen.say(f"Job {one.job} {word}{_PAST[action]}.")
    failed = outcomes_of([run for run in runs if run.outcome not in {"done", "already_done"}])
    for one in failed[:_LISTED]:
        screen.trouble(_failure(one, action))
    if len(failed) > _LISTED:
        screen.trouble(f"... and {len(failed) - _LISTED} more.")


def _tell_factory(one: FactoryOutcome, action: Action, screen: Screen) -> None:
    jobs = f"{counted(one.unmade, 'job')} of cluster {one.cluster}"
    match one.outcome, action:
        case "denied", _:
            screen.trouble(f"Cluster {one.cluster} is not yours.")
        case "bad_status", _:
            pass  # nobody has stopped it, and its jobs say what became of them
        case _, "hold":
            screen.say(f"{jobs} will not be made until it is released.")
        case _, "release":
            screen.say(f"{jobs} will be made as there is room.")
        case _:
            screen.say(f"{jobs} will never be made.")


def _failure(one: JobOutcome, action: Action) -> str:
    match one.outcome:
        case "not_found":
            return f"Job {one.job} is not in the queue; if it has ended, kettle history {one.job} shows it."
        case "denied":
            return f"Job {one.job} is not yours."
        case _ if action == "continue" and one.status == "suspended":
            return (
                f"Job {one.job} is suspended by the policy of its machine, not by its owner: "
                "it goes on when that policy lets it."
            )
        case _:
            return f"Job {one.job} {_WRONG_STATUS[action]}: it is {one.status}."
