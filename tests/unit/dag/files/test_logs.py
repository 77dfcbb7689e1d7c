"""The logs of a workflow: lines that other programs match, written by hand as DAGMan writes them."""

from datetime import UTC
from pathlib import Path

import pytest

from kettle.dag.files.dagman_out import Banner, DagmanOut, banner, stamped
from kettle.dag.files.jobstate_log import JobstateLog, last_number
from kettle.dag.files.node_log import script_events
from kettle.dag.files.progress import Progress
from kettle.userlog import LogReader, heading
from kettle_wire.codes import NodeJobKind, NodePart
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    NodeStep,
    StepFailure,
    SubmissionsFailed,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
)
from kettle_wire.workflows import Plan, Tolerance

from .story import MAKE, PLAN, START, script, seen, started, told

GOLDEN = Path(__file__).parent / "golden"


def test_dagman_out_has_the_lines_that_others_match() -> None:
    """Pegasus's monitord, LSST and CRAB look for them by regular expressions, so every letter counts."""
    progress = Progress(PLAN)
    out = DagmanOut(progress, UTC)
    text = "".join(stamped(at, out.lines(at, event), UTC) for at, event in told(progress))
    assert (GOLDEN / "dagman.out").read_text() == text


def test_a_start_says_who_it_is() -> None:
    """With the number of the version, the process and the files that are read."""
    said = Banner(
        dag_job="7.0", program="/bin/condor_dagman", version="$CondorVersion: 25.0.1 X $", pid=4711,
        arguments=["-Dag", "x.dag"], dag_files=["x.dag", "y.dag"], nodes_log="/d/x.dag.nodes.log",
    )  # fmt: skip
    lines = [*banner(said)]
    assert "** condor_scheduniv_exec.7.0 (CONDOR_DAGMAN) STARTING UP" in lines
    assert "** $CondorVersion: 25.0.1 X $" in lines
    assert "** PID = 4711" in lines
    assert ["Parsing 2 dagfiles", "Parsing x.dag ...", "Parsing y.dag ..."] == lines[-3:]


def test_a_text_of_somebody_else_makes_no_line() -> None:
    """A reason with line breaks cannot look like something that happened."""
    assert "11/14/23 22:13:20 held  01/01/26 00:00:00 done\n" == stamped(
        START, ["held\r\n01/01/26 00:00:00 done"], UTC
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (WorkflowRemoved(), ["Received SIGUSR1"]),
        (WorkflowHalted(reason="lunch"), ["Halting DAGMan progess...", "Halt reason: lunch"]),
        (WorkflowResumed(), ["Resuming DAG progress..."]),
        (
            SubmissionsFailed([StepFailure(NodeStep(MAKE, 0, NodePart.JOB), "no file m.sub", 6)]),
            [
                "Submitting HTCondor Node make job(s)...",
                "ERROR: submit attempt failed: no file m.sub",
                "Event: ULOG_SUBMIT_FAILURE for HTCondor Node make (-1.-1.-1) {11/14/23 22:13:22} no file m.sub",
                "Job submit try 6/6 failed.",
            ],
        ),
    ],
)
def test_what_happens_to_a_workflow_as_a_whole(
    event: WorkflowRemoved | WorkflowHalted | WorkflowResumed | SubmissionsFailed, expected: list[str]
) -> None:
    """And what never becomes a job."""
    progress = Progress(PLAN)
    out = DagmanOut(progress, UTC)
    progress.apply(START, started())
    assert [*out.lines(START, started())]
    progress.apply(START + 2, event)
    assert expected == [*out.lines(START + 2, event)]


def test_the_jobstate_log_numbers_the_tries() -> None:
    """Tries of one node have different numbers, which go on behind those of an earlier run."""
    progress = Progress(PLAN)
    log = JobstateLog(progress, last=20)
    text = "".join(f"{line}\n" for at, event in told(progress) for line in log.lines(at, event))
    assert (GOLDEN / "jobstate.log").read_text() == text
    assert 26 == last_number(text)
    assert 0 == last_number("")


@pytest.mark.parametrize(
    ("most", "outcome"), [(None, "JOB_FAILURE 3"), (1, "JOB_SUCCESS 0"), (0, "JOB_FAILURE 3")]
)
def test_jobs_of_a_node_that_end_together_are_one_outcome(most: int | None, outcome: str) -> None:
    """It comes behind the end of the last of them, and counts how many may fail."""
    step = NodeStep(MAKE, 0, NodePart.JOB)
    tolerances = {} if most is None else {MAKE: Tolerance(most)}
    progress = Progress(Plan(names=["make"], tolerances=tolerances))
    log = JobstateLog(progress)
    ends = [NodeJobFact(step, 5, proc, NodeJobKind.COMPLETED, value) for proc, value in enumerate((0, 3, 0))]
    text: list[str] = []
    for facts in ([NodeJobFact(step, 5, -1, NodeJobKind.SUBMITTED, 3)], ends):
        event = NodeJobsSeen(frame=1, facts=facts)
        progress.apply(START, event)
        text += log.lines(START, event)
    said = [" ".join(line.split()[2:4]) for line in text[3:]]
    assert [*(f"JOB_TERMINATED 5.{proc}" for proc in range(3)), outcome] == said


def test_a_script_that_cannot_be_run_is_a_script_that_has_failed() -> None:
    """
    Its job is held and then removed: the reason of the hold is told, and readers find the lines of a failure.
    """
    progress = Progress(PLAN)
    out, log = DagmanOut(progress, UTC), JobstateLog(progress)
    kinds = (NodeJobKind.SUBMITTED, NodeJobKind.HELD, NodeJobKind.REMOVED)
    event = seen(*(script(MAKE, NodePart.PRE, kind, 8) for kind in kinds), of_1="no right", of_2="removed")
    progress.apply(START, event)
    expected = [
        "Running PRE script of Node make...",
        "PRE Script of node make is held: no right",
        "Error: Failed to execute PRE for Node make: removed",
        "PRE Script of node make failed with status 1",
    ]
    assert expected == [*out.lines(START, event)][: len(expected)]
    assert "1700000000 make PRE_SCRIPT_FAILURE - - - 1" == [*log.lines(START, event)][-1]
    assert {MAKE: "PRE Script was removed (removed)"} == progress.failures


def test_scripts_are_in_the_log_of_the_nodes(tmp_path: Path) -> None:
    """Their events have the form and the id that HTCondor's reader knows."""
    progress = Progress(PLAN)
    text = "".join(text for at, event in told(progress) for text in script_events(progress, at, event, UTC))
    assert (
        "034 (000.000.000) 2023-11-14 22:13:22 PRE script return value is PRE_SKIP value\n    DAG Node: skip\n...\n"
        "016 (013.000.000) 2023-11-14 22:13:34 POST Script terminated.\n"
        "\t(1) Normal termination (return value 3)\n    DAG Node: check\n...\n"
    ) == text
    log = tmp_path / "nodes.log"
    log.write_text(text)
    assert [34, 16] == [heading(block).number for block in LogReader(log).all()]
