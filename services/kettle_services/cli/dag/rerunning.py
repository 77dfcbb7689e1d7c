"""`kettle dag rerun`: a new run of a DAG, in which what has succeeded counts as done."""

import argparse
import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from kettle.client import Client, ClientError, JobId, SubmitError, prepare
from kettle.client.connections.condor_config import CondorConfig
from kettle.dag.faults import DagError
from kettle.dag.files.rerun_file import rerun_lines
from kettle.dag.plan import plan_of
from kettle.dag.rerun import Rerun, RerunError, rerun
from kettle.dag.submission import preparing
from kettle.dag.submission.command_line import OptionError, of_dagman
from kettle.dag.submission.loading import load
from kettle.dag.submission.options import SubmitDagOptions
from kettle.jobs.quoting import QuotingError, split_v2
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.ads.daemon import CONDOR_VERSION
from kettle_wire.commands.dagman import WorkflowState
from kettle_wire.events import ClusterSubmitted
from kettle_wire.workflows import Plan

_MOST_NAMES = 12
"""How many nodes people are shown."""


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Say what runs, and submit it."""
    number: int = arguments.workflow
    state, options = with_pool(arguments, lambda pool: _earlier(pool, number))
    directory = Path(state.directory)
    plan, found = _chosen(state, options, directory, arguments.after, arguments.only)
    sentences = _told(number, plan, found)
    if not screen.as_json:
        for sentence in sentences:
            screen.say(sentence)
    cluster = None
    if not arguments.dry_run and found.runs:
        states = dict(zip(state.names, state.states, strict=True))
        lines = "".join(f"{line}\n" for line in rerun_lines(state.files, plan, found, states, time.time()))
        cluster = _submitted(arguments, options, directory, lines)
        if not screen.as_json:
            screen.say(f"The new run is workflow {cluster}.")
    if screen.as_json:
        runs, assumed = ([plan.names[node] for node in nodes] for nodes in (found.runs, found.assumed))
        screen.json(
            {
                "workflow": number,
                "done": len(found.done),
                "runs": runs,
                "assumed": assumed,
                "rerun": cluster,
            }
        )
    return 0


async def _earlier(pool: Client, number: int) -> tuple[WorkflowState, SubmitDagOptions]:
    """How a workflow ended, and the options with which it was submitted."""
    state = await pool.workflows.show(number, nodes=True)
    if state.status is None:
        raise CommandError(
            f"workflow {number} is not over: what has failed in it runs again when it has ended; condor_rm {number} ends it"
        )
    recorded = [each.event for each in await pool.events(JobId(number, 0))]
    [submitted] = [event for event in recorded if isinstance(event, ClusterSubmitted)]
    said, batch = submitted.ad.get("Arguments"), submitted.ad.get("JobBatchName")
    try:
        options = of_dagman(split_v2(str(said)))
    except (OptionError, QuotingError) as error:
        raise CommandError(
            f"job {number}.0 is no DAG job of condor_submit_dag: its arguments cannot be read: {error}"
        ) from error
    return state, replace(
        options,
        do_rescue_from=0,
        save_file="",
        rescue_file="",
        force=False,
        batch_name=batch if isinstance(batch, str) else "",
    )


def _chosen(
    state: WorkflowState,
    options: SubmitDagOptions,
    directory: Path,
    after: Sequence[str],
    only: Sequence[str],
) -> tuple[Plan, Rerun]:
    """The DAG as it is now, and what of it runs."""
    knobs = CondorConfig(os.environ)
    try:
        plan = plan_of(load(replace(options, auto_rescue=0), directory, knobs.get))
        states = dict(zip(state.names, state.states, strict=True))
        return plan, rerun(plan, states, after=after, only=only)
    except (DagError, RerunError) as error:
        raise CommandError(f"the DAG in {directory} cannot be run again: {error}") from error


def _told(number: int, plan: Plan, found: Rerun) -> list[str]:
    """The preview."""
    if not found.runs:
        return [f"Nothing is to be run: all nodes of workflow {number} have succeeded."]
    names = [plan.names[node] for node in found.runs]
    shown = [*names[:_MOST_NAMES], *(["..."] if len(names) > _MOST_NAMES else [])]
    told = [
        f"Of {counted(len(plan.names), 'node')} {len(found.done)} count as done, and {len(names)} run: {', '.join(shown)}."
    ]
    if found.assumed:
        more = ", ".join(plan.names[node] for node in found.assumed[:_MOST_NAMES])
        told.append(
            f"{counted(len(found.assumed), 'node')} that never succeeded are passed over all the same: {more}"
            f"{', ...' if len(found.assumed) > _MOST_NAMES else ''}."
        )
    return told


def _submitted(arguments: argparse.Namespace, options: SubmitDagOptions, directory: Path, done: str) -> int:
    """Write the files and submit the DAG job; its cluster."""
    knobs = CondorConfig(os.environ)
    try:
        chosen = replace(options, rescue_file=_written(directory, options.primary, done))
        site = preparing.Site(
            directory=directory,
            environ=os.environ,
            knob=knobs.get,
            version=CONDOR_VERSION,
            dagman=options.dagman_path,
        )
        names = preparing.prepare(chosen, site).names
        submission = prepare(Path(names.submit_file), cwd=directory, submit_method=0)
    except (preparing.PreparationError, SubmitError, ClientError, OSError) as error:
        raise CommandError(f"the DAG in {directory} cannot be submitted: {error}") from error
    return with_pool(arguments, lambda pool: pool.submit(submission)).cluster


def _written(directory: Path, primary: str, text: str) -> str:
    """The name of a new file; those of earlier runs stay, because their processes may read them again."""
    for number in itertools.count(1):
        name = f"{primary}.rerun{number:03d}"
        try:
            with (directory / name).open("x", encoding="utf-8", errors="surrogateescape") as file:
                file.write(text)
        except FileExistsError:
            continue
        return name
    raise AssertionError("numbers do not end")
