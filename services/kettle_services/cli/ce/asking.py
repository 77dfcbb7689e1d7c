"""`kettle ce status`, `show`, `trace`, `reload`: an entrypoint asked, as it routes."""

import argparse
import time
from collections.abc import Sequence

import msgspec

from kettle.client import Client
from kettle.client.entrypoint import job_called
from kettle.client.jobs.selection import job_id
from kettle.routes.chain import JobChain, chain_of
from kettle.routes.sentences import outcome_sentences, step_sentence
from kettle.terminal.quantities import duration
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.types import Ad
from kettle_wire.commands.ce import DecidedRoute, DrainSet, VoState


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
    if shown.draining:
        screen.trouble(f"It takes no jobs: {shown.draining}.")
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
    if any(each.vo for each in shown.vos):
        screen.say()
        _vos(shown.vos, screen)
    return 0


def _vos(vos: Sequence[VoState], screen: Screen) -> None:
    """How many jobs each VO has, and may have."""
    rows = [
        (
            each.vo or "(none)",
            _of(each.jobs, each.max_jobs),
            _of(each.idle, each.max_idle),
            _of(each.running, each.max_running),
            str(each.held),
            _of(each.spooled, each.max_spool),
            each.full or "open",
        )
        for each in vos
    ]
    screen.table(
        ("VO", "JOBS", "IDLE", "RUNNING", "HELD", "SPOOL BYTES", "IS"),
        rows,
        styles=["bad" if each.full else "" for each in vos],
        right=frozenset({"JOBS", "IDLE", "RUNNING", "HELD", "SPOOL BYTES"}),
    )


def _of(count: int, most: int | None) -> str:
    return str(count) if most is None else f"{count}/{most}"


def drain(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have the entrypoint take no jobs."""
    return _drain_set(with_pool(arguments, lambda client: client.entrypoint.drain(arguments.reason)), screen)


def resume(arguments: argparse.Namespace, screen: Screen) -> int:
    """Have it take jobs again."""
    return _drain_set(with_pool(arguments, lambda client: client.entrypoint.resume()), screen)


def _drain_set(now: DrainSet, screen: Screen) -> int:
    if screen.as_json:
        screen.json(now)
    else:
        screen.say(f"It takes no jobs: {now.draining}." if now.draining else "It takes jobs.")
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
    chain = chain_of(with_pool(arguments, lambda client: job_called(client, arguments.job)))
    if screen.as_json:
        screen.json(chain)
        return 0
    for name, value in _stations(chain):
        screen.say(f"  {name:<14} {value}")
    return 0


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """What was decided about a job, and what each statement did."""

    async def ask(client: Client) -> tuple[Ad, list[DecidedRoute]]:
        ad = await job_called(client, arguments.job)
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
