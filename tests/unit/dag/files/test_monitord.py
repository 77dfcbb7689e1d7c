"""Pegasus's own monitord reads our `.dagman.out`, and understands all of it."""

import asyncio
from pathlib import Path

from tests.scenario.client_environments import python_with

from kettle.dag.building.parser import parse
from kettle.dag.files.dag_files import DagFiles
from kettle.dag.files.run import DagRun
from kettle.testing.commands.running import execute

from .story import PLAN, START, STORY

DAG = """\
JOB make make.sub
JOB work work.sub
JOB check check.sub
JOB send send.sub
JOB skip skip.sub
SCRIPT PRE make /bin/true
SCRIPT PRE skip /bin/true
SCRIPT POST check /bin/true
RETRY work 1
PARENT make CHILD work
PARENT work CHILD check send
"""
BRAINDUMP = """\
user: ada
root_wf_uuid: 00000000-0000-4000-8000-000000000001
wf_uuid: 00000000-0000-4000-8000-000000000001
dax_label: x
dax_index: "0"
pegasus_wf_name: x-0
timestamp: 20231114T221320+0000
submit_dir: {directory}
planner_version: 5.1.3
jsd: jobstate.log
rundir: {directory}
uses_pmc: "false"
dag: x.dag
type: dag
properties: x.properties
"""
MONITORD = """\
import runpy
import Pegasus.cli
runpy.run_path(f"{Pegasus.cli.__path__[0]}/pegasus-monitord.py", run_name="__main__")
"""
READ = [
    "make PRE_SCRIPT_STARTED", "skip PRE_SCRIPT_STARTED", "make PRE_SCRIPT_TERMINATED", "make PRE_SCRIPT_SUCCESS",
    "skip PRE_SCRIPT_TERMINATED", "skip PRE_SCRIPT_FAILURE",
    "make SUBMIT", "make EXECUTE", "make JOB_TERMINATED", "make JOB_SUCCESS",
    "work SUBMIT", "work EXECUTE", "work JOB_TERMINATED", "work JOB_FAILURE",
    "work SUBMIT", "work EXECUTE", "work JOB_TERMINATED", "work JOB_SUCCESS",
    "check SUBMIT", "send SUBMIT", "check EXECUTE", "send JOB_HELD", "send JOB_HELD_REASON",
    "check JOB_TERMINATED", "check JOB_FAILURE", "send JOB_RELEASED", "check POST_SCRIPT_STARTED", "send EXECUTE",
    "check POST_SCRIPT_TERMINATED", "check POST_SCRIPT_FAILURE", "send JOB_TERMINATED", "send JOB_SUCCESS",
]  # fmt: skip
"""What happened, as monitord says it after us."""


def test_monitord_reads_what_happened(tmp_path: Path) -> None:
    """
    Every state of every node in its order with its job, the retry as a try of its own, and the exit code of the workflow.
    """
    python = asyncio.run(python_with(["pegasus-wms==5.1.3"], "pegasus-wms", tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    (work / "x.dag").write_text(DAG)
    for name in PLAN.names:
        (work / f"{name}.sub").write_text("executable = /bin/true\nqueue\n")
    (work / "braindump.yml").write_text(BRAINDUMP.format(directory=work))
    (work / "x.properties").touch()
    run = DagRun(
        workflow=7, directory=work, dag_files=["x.dag"], log=work / "x.dag.dagman.out", nodes_log=work / "x.dag.nodes.log",
        lock=work / "x.dag.lock", pid=1, program="/bin/condor_dagman",
    )  # fmt: skip
    files = DagFiles(parse(["x.dag"], lambda name: (work / name).read_text()), PLAN, run, START)
    files.record([(START + after, event) for after, event in STORY])
    files.close(START + 14)

    words = [python, "-c", MONITORD, "--replay", "--no-events", "x.dag.dagman.out"]
    said = asyncio.run(execute(words, work, {"PATH": "/usr/bin:/bin", "HOME": str(work)}, within_s=60))
    assert 0 == said.status, said
    lines = [line.split() for line in (work / "jobstate.log").read_text().splitlines()]
    assert READ == [f"{words[1]} {words[2]}" for words in lines if words[1] != "INTERNAL"]
    numbers = {(words[1], words[3]): words[6] for words in lines if words[2] == "SUBMIT"}
    assert numbers["work", "11.0"] != numbers["work", "12.0"]
    assert ["DAGMAN_FINISHED", "1"] == next(
        words[3:5] for words in lines if words[3:4] == ["DAGMAN_FINISHED"]
    )
