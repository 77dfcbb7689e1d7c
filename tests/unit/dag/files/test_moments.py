"""What is written of a workflow at a moment."""

import json
from datetime import UTC
from pathlib import Path

from kettle.classad import Form, read_ads
from kettle.dag.files import dot, metrics, node_status, rescue
from kettle.dag.files.attributes import attributes
from kettle.dag.files.metrics import Metrics
from kettle.dag.files.node_status import NodeLine
from kettle.dag.files.progress import Progress
from kettle.dag.files.rescue import RescueNode
from kettle_wire.codes import NodeState, NodeStatus
from kettle_wire.events.workflow import WorkflowRerunBegun

from .story import CHECK, PLAN, SEND, START, WORK, changed, told

GOLDEN = Path(__file__).parent / "golden"


def at(seconds: float) -> Progress:
    progress = Progress(PLAN)
    assert [*told(progress, seconds)]
    return progress


def test_the_ad_of_the_dag_job_counts_nodes_and_jobs() -> None:
    """While one node is in its jobs, one held, and after the end."""
    assert {
        "DAG_AdUpdateTime": int(START) + 11, "DAG_NodesTotal": 5, "DAG_NodesDone": 3, "DAG_NodesPrerun": 0,
        "DAG_NodesQueued": 2, "DAG_NodesPostrun": 0, "DAG_NodesReady": 0, "DAG_NodesUnready": 0, "DAG_NodesFailed": 0,
        "DAG_NodesFutile": 0, "DAG_JobsSubmitted": 5, "DAG_JobsIdle": 0, "DAG_JobsHeld": 1, "DAG_JobsRunning": 1,
        "DAG_JobsCompleted": 2, "DAG_InRecovery": 0, "DAG_Status": 0,
    } == attributes(at(11))  # fmt: skip
    over = attributes(at(14))
    assert (4, 1, 2, 0, 3) == tuple(
        over[name]
        for name in ("DAG_NodesDone", "DAG_NodesFailed", "DAG_Status", "DAG_JobsHeld", "DAG_JobsCompleted")
    )


def test_a_failure_says_what_failed_last() -> None:
    """Its job and its POST script; what failed in an earlier try is forgotten when a later one begins."""
    progress = at(14)
    assert (
        "Job proc (13.0.0) failed with signal 9 and POST Script failed with status 3"
        == progress.failures[CHECK]
    )
    assert {CHECK} == {node for node in progress.failures if progress.status_of(node) is NodeStatus.ERROR}
    assert SEND not in progress.failures


def test_the_node_status_file_is_ads_with_comments() -> None:
    """As HTCondor writes it, to the letter, and our reader of ads reads it."""
    progress = at(11)
    nodes = [
        NodeLine("make", NodeStatus.DONE),
        NodeLine("work", NodeStatus.DONE, "", 1),
        NodeLine('sa"y', NodeStatus.SUBMITTED, "not_idle", 0, 1, 1),
    ]
    lines = node_status.ads(
        START,
        ["x.dag", "y.dag"],
        NodeStatus.SUBMITTED,
        "",
        progress.counts,
        progress.job_counts,
        nodes,
        START + 60,
        UTC,
    )
    text = "".join(f"{line}\n" for line in lines)
    assert (GOLDEN / "node_status").read_text() == text
    whole, *of_nodes, end = [ad.to_wire() for ad in read_ads(text, Form.NEW)]
    assert ("DagStatus", 2) == (whole["Type"], whole["NodesQueued"])
    assert ["make", "work", 'sa"y'] == [ad["Node"] for ad in of_nodes]
    assert int(START) + 60 == end["NextUpdate"]


def test_the_picture_shows_states_and_what_is_included() -> None:
    """Failed nodes are boxes; a quote in a name does not end it."""
    nodes = [
        ("a", NodeStatus.DONE),
        ("b", NodeStatus.SUBMITTED),
        ('c"', NodeStatus.ERROR),
        ("d", NodeStatus.FUTILE),
    ]
    lines = [*dot.graph(START, nodes, [("a", "b"), ("b", 'c"')], ("top.txt", "rankdir=LR\n"), UTC)]
    assert [
        "digraph DAG {",
        '    label="DAGMan Job status at Tue Nov 14 22:13:20 2023";',
        "",
        "// Beginning of commands included from top.txt.",
        "rankdir=LR",
        "// End of commands included from top.txt.",
        "",
        '    "a" [shape=ellipse label="a (Done)" style=bold];',
        '    "b" [shape=ellipse label="b (R)" peripheries=2];',
        '    "c\\"" [shape=box label="c\\" (E)"];',
        '    "d" [shape=ellipse label="d (I)"];',
        "",
        '    "a" -> "b";',
        '    "b" -> "c\\"";',
        "}",
    ] == lines


def test_pictures_that_are_not_overwritten_are_numbered(tmp_path: Path) -> None:
    """The first free number."""
    picture = tmp_path / "x.dot"
    assert tmp_path / "x.dot.0" == dot.unused(picture)
    (tmp_path / "x.dot.0").touch()
    assert tmp_path / "x.dot.1" == dot.unused(picture)


def test_the_figures_are_json_with_a_line_for_each() -> None:
    """Times have three decimals; Pegasus and CRAB read `jobs`, which are nodes."""
    figures = Metrics(
        version="25.0.1", start_time=START, end_time=START + 1.5, duration=1.5, exitcode=1, dagman_id="7",
        rescue_dag_number=0, jobs=5, jobs_failed=1, jobs_succeeded=4, dag_jobs=0, dag_jobs_failed=0,
        dag_jobs_succeeded=0, total_jobs=5, total_jobs_run=5, graph_height=2, graph_width=2, graph_num_edges=3,
        graph_num_vertices=5, dag_status=2,
    )  # fmt: skip
    text = metrics.text(figures)
    assert text.startswith(
        '{\n    "client":"condor_dagman",\n    "version":"25.0.1",\n    "type":"metrics",\n'
    )
    assert '    "duration":1.500,\n' in text
    assert text.endswith('    "DagStatus":2\n}\n')
    assert (5, 1, 4) == tuple(json.loads(text)[name] for name in ("jobs", "jobs_failed", "jobs_succeeded"))


NODES = [
    RescueNode("a", done=True),
    RescueNode("b", failed=True, retries_made=1, retries=3, unless_exit=4),
    RescueNode("c", failed=True, spared=True),
    RescueNode("d"),
]


def test_a_rescue_file_says_what_is_done() -> None:
    """A partial DAG file; a failed node whose children are all weak is done for them."""
    heading = rescue.rescue_heading(["x.dag"])
    lines = [*rescue.rescue(heading, START, NODES, total=4, keep_retries=False)]
    assert [
        "# Rescue DAG file, created after running",
        "#   the x.dag DAG file",
        "# Created 11/14/2023 22:13:20 UTC",
        "# Rescue DAG version: 2.1.0",
        "#",
        "# Total number of Nodes: 4",
        "# Nodes premarked DONE: 1",
        "# Nodes that failed: 2",
        "#   b,c,<ENDLIST>",
        "",
        "DONE a",
        "# Failed node with only weak child dependencies:",
        "DONE c",
    ] == lines


def test_retries_are_kept_where_that_is_wanted() -> None:
    """What is left of them, with the exit code that ends them."""
    lines = [*rescue.rescue(rescue.save_point_heading("d"), START, NODES, total=4, keep_retries=True)]
    assert "# Save file written at Start Node d" == lines[0]
    assert ["# 1 of 3 retries already performed; 2 remaining", "RETRY b 2 UNLESS-EXIT 4"] == lines[-4:-2]


def test_who_begins_again_has_all_of_its_retries() -> None:
    """Tries before that do not count, however many there were."""
    progress = Progress(PLAN)
    progress.apply(START, changed((WORK, NodeState.FAILED, 1, 2)))
    assert 1 == progress.retries_made(WORK)
    progress.apply(START, WorkflowRerunBegun(nodes=[WORK]))
    progress.apply(START, changed((WORK, NodeState.READY, 2, 0)))
    assert 0 == progress.retries_made(WORK)
    progress.apply(START, changed((WORK, NodeState.FAILED, 3, 2)))
    assert 1 == progress.retries_made(WORK)


def test_rescue_files_are_numbered_up_to_the_largest(tmp_path: Path) -> None:
    """Behind the newest, whatever is missing before it; of several DAG files they have another name."""
    dag = tmp_path / "x.dag"
    assert (0, 1) == (
        rescue.newest(dag, multi=False, largest=100),
        rescue.next_number(dag, multi=False, largest=100),
    )
    for name in (
        "x.dag.rescue001",
        "x.dag.rescue003",
        "x.dag.rescue2",
        "x.dag.rescue004.old",
        "x.dag_multi.rescue007",
    ):
        (tmp_path / name).touch()
    assert (3, 4) == (
        rescue.newest(dag, multi=False, largest=100),
        rescue.next_number(dag, multi=False, largest=100),
    )
    assert 3 == rescue.next_number(dag, multi=False, largest=3)
    assert 8 == rescue.next_number(dag, multi=True, largest=100)
    assert tmp_path / "x.dag_multi.rescue008" == rescue.rescue_name(dag, 8, multi=True)
    assert [tmp_path / "x.dag.rescue003.old"] == rescue.set_aside(dag, multi=False, after=1)
    assert {1: tmp_path / "x.dag.rescue001"} == rescue.existing(dag, multi=False)


def test_save_files_have_a_directory_unless_they_have_a_path(tmp_path: Path) -> None:
    """Without a name they have that of the node and the DAG file."""
    dag = tmp_path / "x.dag"
    assert tmp_path / "save_files" / "a-x.dag.save" == rescue.save_file(tmp_path, dag, "a", None)
    assert tmp_path / "save_files" / "s" == rescue.save_file(tmp_path, dag, "a", "s")
    assert tmp_path / "s" == rescue.save_file(tmp_path, dag, "a", "./s")
