"""What `edit` and `prio` have in common: they set attributes of jobs in the queue."""

import argparse
from collections import Counter

from kettle.client import Client, Select
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import selection, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import Acted, FactoryOutcome, JobOutcome

_LISTED = 20
_ON_A_MACHINE = frozenset({"running", "suspended", "vacating"})


def edit_jobs(
    arguments: argparse.Namespace, screen: Screen, attributes: Ad, *, add_to_priority: int = 0
) -> int:
    """Edit the jobs, and print the result for each; returns 1 if it was possible for none."""
    select = selection(arguments)
    if not (select.jobs or select.clusters or select.owners or select.constraint or arguments.all):
        raise UsageError("which jobs?  Name them by id, --jobset, --owner or --constraint, or say --all")
    if arguments.all and (arguments.ids or select.owners):
        raise UsageError("--all is all of your jobs: name others by id or --owner, without it")

    async def do(pool: Client) -> Acted:
        # A set is somebody's: others may have one of the same name.
        own = arguments.all or (arguments.jobset and not (arguments.ids or select.owners))
        mine = Select(owners=[pool.pool.user], constraint=select.constraint) if own else select
        return await pool.edit_jobs(mine, attributes, add_to_priority=add_to_priority)

    acted = with_pool(arguments, do)
    outcomes = acted.outcomes
    if screen.as_json:
        screen.json([{"job": str(one.job), "outcome": one.outcome, "status": one.status} for one in outcomes])
    else:
        _tell(outcomes, screen)
        for factory in acted.factories:
            screen.trouble(untouched(factory))
    counts = Counter(one.outcome for one in outcomes)
    if not outcomes:
        raise CommandError(
            "no job in the queue matches the selection; see what is there with: kettle q --all-users"
        )
    return 0 if counts["done"] or counts["already_done"] else 1


def untouched(one: FactoryOutcome) -> str:
    """Of jobs that are still to be made, in a sentence."""
    are = "is" if one.unmade == 1 else "are"
    return (
        f"{counted(one.unmade, 'job')} of cluster {one.cluster} {are} still to be made, and will come as submitted: "
        "edit them when they are in the queue, or remove the cluster and submit what is left again."
    )


def _tell(outcomes: list[JobOutcome], screen: Screen) -> None:
    for outcome, what in (("done", "changed"), ("already_done", "was so already")):
        group = [one for one in outcomes if one.outcome == outcome]
        if len(group) > _LISTED:
            screen.say(f"{counted(len(group), 'job')} {what}.")
        else:
            for one in group:
                running = " (it runs: what it began with stays until its next run)"
                screen.say(
                    f"Job {one.job} {what}{running if one.status in _ON_A_MACHINE and outcome == 'done' else ''}."
                )
    failed = [one for one in outcomes if one.outcome not in {"done", "already_done"}]
    for one in failed[:_LISTED]:
        screen.trouble(_failure(one))
    if len(failed) > _LISTED:
        screen.trouble(f"... and {len(failed) - _LISTED} more.")


def _failure(one: JobOutcome) -> str:
    match one.outcome:
        case "not_found":
            return f"Job {one.job} is not in the queue; if it has ended, kettle history {one.job} shows it."
        case "denied":
            return f"Job {one.job} is not yours."
        case "too_large":
            return f"The ad of job {one.job} would become too large."
        case _:
            return f"Job {one.job} cannot be changed any more: it is {one.status}."
