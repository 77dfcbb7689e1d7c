"""`kettle ce status`, `show`, `trace`, `reload`: an entrypoint asked, as it routes."""

import argparse
import time

import msgspec

from kettle.client import Client
from kettle.client.jobs.selection import job_id
from kettle.routes.chain import CHAIN, JobChain, chain_condition, chain_of
from kettle.routes.sentences import outcome_sentences, step_sentence
from kettle.terminal.quantities import duration
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad
from kettle_wire.commands.ce import DecidedRoute
from kettle_wire.commands.queue import Select
from kettle_wire.jobs import JobId


def status(arguments: argparse.Namespace, screen: Screen) -> int:
    """The routes in force."""
    shown = with_pool(arguments, lambda client: client.entrypoint.routes())
    if screen.as_json:
        screen.json(shown)
        return 0
    since = duration(max(time.time() - shown.loaded, 0.0))
    screen.say(
        f"Routes of {shown.source or 'no file'}, version {shown.version or '-'}, for {since}; {shown.waiting} jobs wait."
    )
    for problem in shown.problems:
        screen.trouble(f"A newer file is refused: {problem}")
    rows = [
        (
            each.name,
            each.target,
            f"{each.jobs}/{each.max_jobs}",
            f"{each.idle}/{each.max_idle}",
            each.closed or "open",
            each.failure,
        )
        for each in shown.routes
    ]
    screen.table(
        ("ROUTE", "LEADS TO", "JOBS", "IDLE", "IS", "LAST FAILURE"),
        rows,
        styles=["bad" if each.closed else "" for each in shown.routes],
        right=frozenset({"JOBS", "IDLE"}),
    )
    return 0


def reload(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have the route file read again."""
    read = with_pool(arguments, lambda client: client.entrypoint.load())
    if screen.as_json:
        screen.json(read)
    elif not read.problems:
        screen.say(f"Version {read.version} is in force.")
    for problem in read.problems if not screen.as_json else ():
        screen.trouble(problem)
    return int(bool(read.problems))


def trace(arguments: argparse.Namespace, screen: Screen) -> int:
    """What each station calls a job."""
    chain = chain_of(with_pool(arguments, lambda client: _found(client, arguments.job)))
    if screen.as_json:
        screen.json(chain)
        return 0
    for name, value in _stations(chain):
        screen.say(f"  {name:<14} {value}")
    return 0


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """What was decided about a job, and what each statement did."""

    async def ask(client: Client) -> tuple[Ad, list[DecidedRoute]]:
        ad = await _found(client, arguments.job)
        return ad, await client.entrypoint.decisions(job_id(chain_of(ad).id))

    ad, decisions = with_pool(arguments, ask)
    chain = chain_of(ad)
    if screen.as_json:
        screen.json({"job": chain, "decisions": decisions})
        return 0
    screen.say(screen.paint(f"Job {chain.id} is {chain.state}", "strong"))
    for each in decisions:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each.at))
        screen.say(
            f"{at}  {f'route {each.route}' if each.route else 'no route takes it'}, version {each.version}"
        )
        for line in outcome_sentences(each.attributes, each.removed, each.refusals):
            screen.say(f"  {line}")
        for step in each.trace:
            screen.say(f"    {step_sentence(step)}")
    if not decisions:
        screen.note("The entrypoint has decided nothing about this job.")
    return 0


async def _found(client: Client, text: str) -> Ad:
    """The ad of the job that any of its stations calls so: of the queue, else of the history."""
    parts = text.split(".")
    own = len(parts) <= 2 and all(part.isdecimal() for part in parts)
    jobs = [job_id(text)] if own and len(parts) == 2 else []
    select = Select(jobs=jobs) if jobs else Select(constraint=chain_condition(text))
    found = await client.jobs(select, projection=list(CHAIN), limit=2)
    if not found:
        found = await client.history(select, limit=2)
    if not found and own and not jobs:  # no batch system calls a job so
        cluster = Select(jobs=[JobId(int(text), 0)])
        found = await client.jobs(cluster, projection=list(CHAIN))
        found = found or await client.history(cluster)
    if not found:
        raise CommandError(f"no job is called {text}, by its access point or a batch system")
    if len(found) > 1:
        names = ", ".join(chain_of(ad).id for ad in found)
        raise CommandError(
            f"several jobs are called {text} by batch systems, such as {names}: name one of these"
        )
    return found[0]


def _stations(chain: JobChain) -> list[tuple[str, str]]:
    said = msgspec.structs.asdict(chain)
    labels = {
        "id": "job",
        "global_id": "everywhere",
        "state": "is",
        "outcome": "ended as",
        "reason": "because",
        "exit_code": "exit code",
        "route": "route",
        "resource": "leads to",
        "grid_id": "grid job",
        "batch_id": "batch job",
        "host": "on",
    }
    return [(label, str(said[name])) for name, label in labels.items() if said[name] not in {"", None}]
