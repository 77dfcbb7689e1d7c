"""`kettle pool explain`: the last plan and its reasons."""

import argparse
import time
from collections.abc import Sequence

import msgspec

from kettle.client import Client, JobId
from kettle.client.explanations.worker_pools import (
    ago,
    jobs_sentence,
    machines_sentence,
    obstacle_sentence,
    removal_sentence,
    sleep_sentence,
    wake_sentence,
)
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.worker_pools import PlanExplained
from kettle_wire.events.plan import PlanMade, WaitingJobs

_MOST_GROUPS = 30
"""So many kinds of jobs a person is shown; programs get all."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    job = _job(arguments.job) if arguments.job else None

    async def ask(client: Client) -> PlanExplained:
        explained = await client.worker_pools.explain(
            arguments.pool, dry_run=arguments.dry_run, at=arguments.at / 1e6
        )
        return explained if job is None else await _of_job(client, explained, job)

    explained = with_pool(arguments, ask)
    if screen.as_json:
        screen.json(explained)
    else:
        _show(explained, arguments.pool, screen, now=time.time())
    return 0


def _job(text: str) -> JobId:
    cluster, _, proc = text.partition(".")
    if not (cluster.isdecimal() and (proc or "0").isdecimal()):
        raise UsageError(f"'{text}' is no job: write CLUSTER.PROC, as in 12.3")
    return JobId(int(cluster), int(proc or 0))


async def _of_job(client: Client, explained: PlanExplained, job: JobId) -> PlanExplained:
    """What the plan says of jobs like one."""
    found = (await client.why(job)).explanation
    if found is None:
        raise CommandError(f"job {job} has left the queue: see what became of it with kettle why {job}")
    key = (found.submitter, client.pool.schedd, found.autocluster)
    waiting = [
        each for each in explained.plan.waiting if (each.submitter, each.schedd, each.autocluster) == key
    ]
    if not waiting:
        raise CommandError(
            f"plan {explained.plan.number} did not look at job {job}, which is {found.status}: only jobs that wait ask for machines"
        )
    plan = msgspec.structs.replace(
        explained.plan, waiting=waiting, machines=[], removals=[], wakes=[], sleeps=[]
    )
    return msgspec.structs.replace(explained, plan=plan)


def _show(explained: PlanExplained, pool: str, screen: Screen, *, now: float) -> None:
    plan = explained.plan
    waiting = sum(each.jobs for each in plan.waiting)
    ordered = sum(each.machines for each in plan.machines) - len(plan.wakes)
    when = ago(explained.at, now=now) if explained.carried_out else "not carried out"
    screen.say(
        screen.paint(f"Plan {plan.number}", "strong")
        + f" ({when}): {counted(waiting, 'job')} of {counted(len(plan.waiting), 'kind')} waited, "
        f"{counted(plan.slots, 'slot')} and {counted(plan.leases, 'lease')} were looked at, "
        f"{counted(ordered, 'machine')} ordered, {counted(len(plan.removals), 'machine')} to go"
        + (f", {len(plan.wakes)} woken" if plan.wakes else "")
        + (f", {len(plan.sleeps)} to sleep" if plan.sleeps else "")
        + "."
    )
    _show_waiting(plan.waiting, pool, screen, now=now)
    _show_machines(plan, screen)


def _show_waiting(waiting: Sequence[WaitingJobs], pool: str, screen: Screen, *, now: float) -> None:
    if not waiting:
        return
    screen.say()
    rows = [
        (
            each.submitter,
            _kind(each),
            each.jobs if each.nodes == 1 else f"{each.jobs} of {each.nodes} nodes",
            jobs_sentence(each),
            ", ".join(each.leases[:4]) + (" ..." if len(each.leases) > 4 else ""),
        )
        for each in waiting[:_MOST_GROUPS]
    ]
    styles = ["bad" if each.obstacles else "" for each in waiting[:_MOST_GROUPS]]
    screen.table(("SUBMITTER", "LIKE", "JOBS", "WHAT IS DONE", "LEASES"), rows, styles=styles)
    if len(waiting) > _MOST_GROUPS:
        screen.say(
            f"{len(waiting) - _MOST_GROUPS} more kinds of jobs are in: kettle pool explain {pool} --json"
        )
    for each in waiting[:_MOST_GROUPS]:
        if each.fault:
            screen.say(f"{each.submitter}, jobs like {_kind(each)}: {screen.paint(each.fault, 'bad')}")
        for obstacle in each.obstacles:
            if obstacle.pool == pool:
                screen.say(
                    f"  {each.submitter}, jobs like {_kind(each)}: {obstacle_sentence(obstacle, now=now)}"
                )


def _kind(waiting: WaitingJobs) -> str:
    """One of the jobs of a kind, for all of them."""
    return f"{waiting.example or waiting.autocluster}@{waiting.schedd}"


def _show_machines(plan: PlanMade, screen: Screen) -> None:
    if plan.machines:
        screen.say()
    for planned in plan.machines:
        screen.say(f"{machines_sentence(planned)}{f'; score {planned.score:.4g}' if planned.score else ''}")
    if plan.removals or plan.wakes or plan.sleeps:
        screen.say()
    for removal in plan.removals:
        screen.say(removal_sentence(removal))
    for said in (*map(wake_sentence, plan.wakes), *map(sleep_sentence, plan.sleeps)):
        screen.say(said)
