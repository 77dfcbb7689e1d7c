"""condor_dagman: the process of a DAG job. condor_submit_dag has it started; nobody starts it by hand."""

import asyncio
import hashlib
import logging
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.configuration import version
from kettle_services.condor.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kettle.client import Client
    from kettle.dag.files.run import DagRun
    from kettle.dag.structure import Dag
    from kettle.dag.submission.options import SubmitDagOptions
    from kettle_services.condor.dagman.node_jobs import NodesInCommon
    from kettle_services.condor.dagman.node_source import NodeSource
    from kettle_services.condor.dagman.own_job import OwnJob
    from kettle_wire.commands.dagman import StartWorkflow
    from kettle_wire.events.workflow import WorkflowStarted
    from kettle_wire.workflows import WorkflowOptions

HELP: Final = {
    "condor_dagman": """\
usage: condor_dagman -Lockfile FILE -Dag FILE [options]

The program of the job that condor_submit_dag submits: it runs a DAG for as long as that takes.
It is not started by hand, and ends with the exit code of the DAG.
""",
}
_ATTEMPTS: Final = 6
"""DAGMAN_MAX_SUBMIT_ATTEMPTS, if nobody has set it."""


def run(_name: str, words: list[str]) -> int:
    """Run the DAG."""
    from kettle.dag.faults import DagError
    from kettle.dag.submission.command_line import OptionError, of_dagman
    from kettle.jobs.quoting import QuotingError
    from kettle.submit.errors import PlacelessError

    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s", level=logging.WARNING)
    try:
        return asyncio.run(_run(of_dagman(words), words))
    except (DagError, OptionError, PlacelessError, QuotingError, OSError) as error:
        raise ToolError(f"ERROR: {error}") from error


async def _run(options: "SubmitDagOptions", words: list[str]) -> int:
    from kettle.client import Client
    from kettle.client.connections.condor_config import knobs_in, pool_of
    from kettle.dag.files.dag_files import DagFiles
    from kettle.dag.plan import plan_of
    from kettle.dag.submission.options import CRITICAL_PATH
    from kettle_services.condor.dagman.begun_with import held, why_not
    from kettle_services.condor.dagman.node_memo import NodeMemo
    from kettle_services.condor.dagman.node_urgency import node_urgency
    from kettle_services.condor.dagman.own_job import own_job
    from kettle_services.condor.dagman.process import Hands

    of_dag = os.environ.get("_CONDOR_DAGMAN_CONFIG_FILE")
    knobs = CondorConfig(os.environ, given=knobs_in(Path(of_dag)) if of_dag else None)
    job = own_job()
    os.chdir(job.directory)  # the job may have one of its own
    async with Client.connect(pool=pool_of(knobs, name=job.schedd), patience=float("inf")) as client:
        client.waiting = logging.getLogger(__name__).warning  # the reason of a wait without end is in lib.err
        began = await client.workflows.begun(job.cluster)
        common, source_of, rescued = await _read_again(client, began, job, options, knobs)
        if job.sent:
            _leave_among_results(options, job)
        run = _files(options, common, words, rescued, knobs, job)
        if DagFiles.are_complete(run) and (code := await _exit_code(client, job.cluster)) is not None:
            return code  # an earlier process had done all of it, and was killed as it ended
        urgency: list[int] = []
        if _order(options, knobs) == CRITICAL_PATH:
            urgency = await node_urgency(client, common)
            top = max(urgency, default=0)
            common = replace(common, priorities=[each - top for each in urgency])
        start = _start(common, knobs, urgency, memo=_has_memo(options, knobs, job))
        if began is not None and (reason := why_not(began, start.digest, plan_of(common.dag))):
            await held(client, job.cluster, reason)
        files = DagFiles(common.dag, plan_of(common.dag), run, time.time())
        memo = await NodeMemo.of_earlier_runs(client, common) if start.options.memo else None
        attempts = int(knobs.number("DAGMAN_MAX_SUBMIT_ATTEMPTS", _ATTEMPTS))
        hands = Hands(client, source_of(common), start, files, attempts=max(1, attempts), memo=memo)
        return await hands.run()


def _leave_among_results(options: "SubmitDagOptions", job: "OwnJob") -> None:
    """
    Have what was sent come back with the results: a new run can be made of it then.  What has a new time counts as written by the job.
    """
    for name in [job.document] if job.document else options.dag_files:
        os.utime(job.directory / name)


async def _read_again(
    client: "Client",
    began: "WorkflowStarted | None",
    job: "OwnJob",
    options: "SubmitDagOptions",
    knobs: CondorConfig,
) -> "tuple[NodesInCommon, Callable[[NodesInCommon], NodeSource], int]":
    """
    What is to be run, as its files say it now; if they cannot be read, a workflow that has begun is not given up.
    """
    from kettle.dag.faults import DagError
    from kettle_services.condor.dagman.begun_with import held, unreadable

    try:
        return _of_document(job, options, knobs) if job.document else _of_dag(job, options, knobs)
    except (DagError, OSError) as error:
        if began is None:
            raise
        await held(client, job.cluster, unreadable(began, error))


async def _exit_code(client: "Client", workflow: int) -> int | None:
    """
    The exit code of a workflow that is over.

    None: it is not over, and files that say so are of another pool, or another queue, which had given out the same number.
    """
    from kettle.client import CommandRefusedError
    from kettle_wire.codes import RefusalCode

    try:
        return (await client.workflows.show(workflow)).exit_code
    except CommandRefusedError as refusal:
        if refusal.code != RefusalCode.NOT_FOUND:
            raise
        return None


def _read(options: "SubmitDagOptions", job: "OwnJob", knobs: CondorConfig) -> "tuple[Dag, int]":
    """
    The DAG, and the number of the rescue file with which it begins.

    A process that goes on begins with the same one: a newer one is of its own run.
    """
    from kettle.dag.files.run_lock import written_of
    from kettle.dag.submission.loading import load, newest_rescue
    from kettle.dag.submission.names import file_names

    number = options.do_rescue_from or newest_rescue(options, job.directory, knobs.get)
    before = written_of(job.directory / file_names(options).lock_file, job.cluster, job.name)
    if before is not None:
        number = before.rescued_from
    chosen = replace(options, do_rescue_from=number, auto_rescue=0)
    return load(chosen, job.directory, knobs.get), number


def _of_dag(
    job: "OwnJob", options: "SubmitDagOptions", knobs: CondorConfig
) -> "tuple[NodesInCommon, Callable[[NodesInCommon], NodeSource], int]":
    """What DAG files say, what makes jobs of that, and the number of the rescue file among them."""
    from kettle.client import ClientError
    from kettle_services.condor.dagman.dag_nodes import DagNodes, refuse_what_runs_here

    dag, rescued = _read(options, job, knobs)
    if job.by_token:
        try:
            refuse_what_runs_here(dag)
        except ClientError as error:
            raise ToolError(f"ERROR: {error}") from error
    above = dag.edges.parents()
    names = [node.name for node in dag.nodes]
    parents = [",".join(names[parent] for parent in above.nodes_of(index)) for index in range(len(names))]
    common = _in_common(dag, parents, job, options, knobs)
    keeps = (
        knobs.flag("DAGMAN_KEEP_OUTPUTS", default=False)
        if options.keep_outputs is None
        else options.keep_outputs
    )
    keeps_at = job.schedd if keeps else ""
    return common, partial(DagNodes, sent=job.sent, by_token=job.by_token, keeps_at=keeps_at), rescued


def _of_document(
    job: "OwnJob", options: "SubmitDagOptions", knobs: CondorConfig
) -> "tuple[NodesInCommon, Callable[[NodesInCommon], NodeSource], int]":
    """What a document of PROMINENCE says; it has no rescue files."""
    from kettle.prominence.faults import DocumentRefused
    from kettle.prominence.workflow_orders import OrderedWorkflow
    from kettle_services.condor.dagman.document_nodes import DocumentNodes

    try:
        ordered = OrderedWorkflow.read((job.directory / job.document).read_bytes())
    except (DocumentRefused, msgspec.MsgspecError) as error:
        raise ToolError(f"ERROR: {job.document}: {error}") from error
    options = replace(options, reruns=ordered.workflow.policies.maximum_reruns)
    common = _in_common(ordered.dag(job.document), ordered.parents(), job, options, knobs)
    return common, partial(DocumentNodes, ordered=ordered), 0


def _in_common(
    dag: "Dag", parents: "Sequence[str]", job: "OwnJob", options: "SubmitDagOptions", knobs: CondorConfig
) -> "NodesInCommon":
    from kettle.dag.submission.preparing import Site
    from kettle_services.condor.dagman.node_jobs import NodesInCommon

    return NodesInCommon(
        dag=dag,
        workflow=job.cluster,
        batch=job.batch_name(options.primary),
        directory=job.directory,
        nodes_log=job.directory / f"{options.primary}.nodes.log",
        parents=parents,
        options=options,
        site=Site(
            directory=job.directory,
            environ=os.environ,
            knob=knobs.get,
            version=version(),
            dagman=options.dagman_path or sys.argv[0],
        ),
    )


def _order(options: "SubmitDagOptions", knobs: CondorConfig) -> str:
    from kettle.dag.submission.options import ORDERS, READINESS

    order = options.order or (knobs.get("DAGMAN_ORDER") or READINESS).strip()
    if order not in ORDERS:
        raise ToolError(f"ERROR: DAGMAN_ORDER is one of {', '.join(ORDERS)}, and not {order}")
    return order


def _has_memo(options: "SubmitDagOptions", knobs: CondorConfig, job: "OwnJob") -> bool:
    """Whether nodes are left out that are unchanged: not where their files come and go with the DAG job."""
    wanted = knobs.flag("DAGMAN_MEMO", default=False) if options.memo is None else options.memo
    return wanted and not (job.sent or job.document)


def _start(
    source: "NodesInCommon",
    knobs: CondorConfig,
    urgency: "Sequence[int]",
    *,
    memo: bool,
) -> "StartWorkflow":
    from kettle.dag import node_order
    from kettle.dag.plan import plan_of
    from kettle_wire.commands.dagman import StartWorkflow
    from kettle_wire.workflows import packed

    return StartWorkflow(
        workflow=source.workflow,
        files=source.options.dag_files,
        directory=str(source.directory),
        digest=hashlib.sha256(msgspec.msgpack.encode(source.dag)).hexdigest(),
        plan=packed(plan_of(source.dag, node_order.packed(urgency))),
        options=replace(_limits(source.options, knobs), memo=memo),
    )


def _limits(options: "SubmitDagOptions", knobs: CondorConfig) -> "WorkflowOptions":
    """What the command line says, else the knobs, else what DAGMan has."""
    from kettle_wire.workflows import WorkflowOptions

    def limit(said: int | None, knob: str, usual: int) -> int:
        return max(0, int(knobs.number(knob, usual)) if said is None else said)

    usual = WorkflowOptions()
    always = options.post_run
    return WorkflowOptions(
        max_jobs=limit(options.max_jobs, "DAGMAN_MAX_JOBS_SUBMITTED", usual.max_jobs),
        max_idle=limit(options.max_idle, "DAGMAN_MAX_JOBS_IDLE", usual.max_idle),
        max_pre=limit(options.max_pre, "DAGMAN_MAX_PRE_SCRIPTS", usual.max_pre),
        max_post=limit(options.max_post, "DAGMAN_MAX_POST_SCRIPTS", usual.max_post),
        max_hold=limit(options.max_hold, "DAGMAN_MAX_HOLD_SCRIPTS", usual.max_hold),
        reruns=max(0, options.reruns or 0),
        always_run_post=knobs.flag("DAGMAN_ALWAYS_RUN_POST", default=False) if always is None else always,
    )


def _files(
    options: "SubmitDagOptions",
    source: "NodesInCommon",
    words: list[str],
    rescued: int,
    knobs: CondorConfig,
    job: "OwnJob",
) -> "DagRun":
    from kettle.dag.files.run import DagRun
    from kettle.dag.submission.loading import MOST_RESCUES
    from kettle.dag.submission.names import file_names

    names = file_names(options)
    largest = int(knobs.number("DAGMAN_MAX_RESCUE_NUM", MOST_RESCUES))
    return DagRun(
        workflow=source.workflow,
        job=job.name,
        directory=source.directory,
        dag_files=options.dag_files,
        log=source.directory / names.debug_log,
        nodes_log=source.nodes_log,
        lock=source.directory / names.lock_file,
        pid=os.getpid(),
        program=sys.argv[0],
        arguments=words,
        rescued_from=rescued,
        largest_rescue=largest,
        keep_retries=not knobs.flag("DAGMAN_RESET_RETRIES_UPON_RESCUE", default=True),
        parent=job.parent,
    )
