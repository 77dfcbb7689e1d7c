"""All files of a workflow on a disk, by a process that may be killed at any moment."""

import json
from pathlib import Path

import pytest

from kettle.dag.building.parser import parse
from kettle.dag.files.dag_files import DagFiles
from kettle.dag.files.run import DagRun
from kettle.dag.files.run_lock import InUseError
from kettle_wire.codes import DagStatus, NodeState
from kettle_wire.events.workflow import SavePointReached, WorkflowEvent, WorkflowStopping

from .story import MAKE, PLAN, START, STORY, WORK, changed, started

DAG = """\
JOB make make.sub
JOB work work.sub
JOB check check.sub
JOB send send.sub
JOB skip skip.sub
PARENT make CHILD work
PARENT work CHILD check send
SAVE_POINT_FILE work
NODE_STATUS_FILE states 60
JOBSTATE_LOG jobs
DOT picture UPDATE
"""
EVENTS: list[tuple[float, WorkflowEvent]] = [(START + after, event) for after, event in STORY]


class Process:
    """The process of the DAG job, which may be started several times."""

    def __init__(self, directory: Path) -> None:
        (directory / "x.dag").write_text(DAG)
        self.directory = directory
        self._dag = parse(["x.dag"], lambda name: (directory / name).read_text())
        self._files: list[DagFiles] = []

    def start(self, *, workflow: int = 7, pid: int = 1, largest_rescue: int = 100) -> DagFiles:
        self.run = DagRun(
            workflow=workflow, directory=self.directory, dag_files=["x.dag"], log=self.directory / "x.dag.dagman.out",
            nodes_log=self.directory / "x.dag.nodes.log", lock=self.directory / "x.dag.lock", pid=pid,
            program="/bin/condor_dagman", largest_rescue=largest_rescue,
        )  # fmt: skip
        files = DagFiles(self._dag, PLAN, self.run, START)
        self._files.append(files)
        return files

    def killed(self, files: DagFiles) -> None:
        """It is gone without a word: only its lock goes with it."""
        files.abandon()

    def text(self, name: str) -> str:
        return (self.directory / name).read_text()

    def log(self) -> list[str]:
        """What is in `.dagman.out`, without times and without what each start says."""
        lines = [line[18:] for line in self.text("x.dag.dagman.out").splitlines()]
        return [line for line in lines if not line.startswith(_OF_STARTS)]


_OF_STARTS = ("**", "Default node log", "DAG Input file", "Parsing ")


@pytest.fixture
def process(tmp_path: Path) -> Process:
    return Process(tmp_path)


def test_a_run_leaves_all_its_files(process: Process) -> None:
    """And its lock is gone, and the last state file says that nothing more comes."""
    files = process.start()
    with pytest.raises(InUseError, match=r"x\.dag\.lock: another DAGMan is at work on this DAG"):
        process.start()
    files.record(EVENTS)
    files.close(START + 14)
    assert ["DONE make", "DONE work", "DONE send", "DONE skip"] == process.text(
        "x.dag.rescue001"
    ).splitlines()[-4:]
    figures = json.loads(process.text("x.dag.metrics"))
    assert (5, 1, 4, "7", 3, 2) == tuple(
        figures[name]
        for name in ("jobs", "jobs_failed", "jobs_succeeded", "dagman_id", "graph_height", "graph_width")
    )
    states = process.text("states")
    assert '  DagStatus = 6; /* "STATUS_ERROR (failed)" */\n' in states
    assert '  NextUpdate = 0; /* "none" */\n' in states
    assert '"check" [shape=box' in process.text("picture")
    assert 2 == process.text("x.dag.nodes.log").count("DAG Node: ")
    assert "INTERNAL *** DAGMAN_FINISHED 1 ***" == process.text("jobs").splitlines()[-1].partition(" ")[2]
    assert (
        "**** condor_scheduniv_exec.7.0 (condor_DAGMAN) pid 1 EXITING WITH STATUS 1"
        == process.text("x.dag.dagman.out").splitlines()[-1][18:]
    )
    assert not (process.directory / "x.dag.lock").exists()
    assert DagFiles.are_complete(process.run)


@pytest.mark.parametrize("killed_after", range(len(EVENTS)))
def test_a_killed_process_costs_and_doubles_no_line(
    process: Process, tmp_path: Path, killed_after: int
) -> None:
    """Whatever it had written and not noted when it was killed, the logs are those of one that was not."""
    (tmp_path / "whole").mkdir()
    whole = Process(tmp_path / "whole")
    files = whole.start()
    files.record(EVENTS)
    files.close(START + 14)

    files = process.start()
    files.record(EVENTS[:killed_after])
    noted = process.run.lock.read_bytes()
    files.record(EVENTS[killed_after : killed_after + 1])
    process.killed(files)
    process.run.lock.write_bytes(noted)  # the last of it was written, and not noted any more
    files = process.start(pid=2)
    assert killed_after == files.position
    for event in EVENTS:
        files.record([event])
    files.close(START + 14)
    assert whole.log() == process.log()
    for name in ("jobs", "x.dag.nodes.log", "x.dag.rescue001", "x.dag.metrics"):
        assert whole.text(name) == process.text(name), name
    assert not (process.directory / "x.dag.rescue002").exists()


def test_another_run_of_a_dag_is_written_behind_the_first(process: Process) -> None:
    """Its logs and their numbers go on, the log of the nodes begins again, the rescue file is another."""
    files = process.start()
    files.record(EVENTS)
    files.close(START + 14)
    first, states = process.text("x.dag.dagman.out"), process.text("jobs")
    files = process.start(workflow=8)
    assert "" == process.text("x.dag.nodes.log")
    files.record([(START + 20, started(8)), *EVENTS[1:]])
    files.close(START + 40)
    assert process.text("x.dag.dagman.out").startswith(first)
    assert "** condor_scheduniv_exec.8.0 (CONDOR_DAGMAN) STARTING UP" in process.text("x.dag.dagman.out")
    more = process.text("jobs").removeprefix(states)
    assert "7" == more.splitlines()[1].split()[-1]
    assert (process.directory / "x.dag.rescue002").exists()


def test_state_files_keep_their_interval(process: Process) -> None:
    """Written at once, then not within a minute, and not if nothing has changed; a hold is told at once."""
    files = process.start()
    files.record(EVENTS[:2])
    assert files.refresh(START) is None
    assert "  NodesPre = 2;" in process.text("states")
    files.record(EVENTS[2:6])
    assert 5 == files.refresh(START)  # the picture is due first
    assert 1 == files.refresh(START + 59)
    assert "  NodesPre = 2;" in process.text("states")
    files.refresh(START + 60)
    assert "  NodesQueued = 1;" in process.text("states")
    assert files.refresh(START + 500) is None
    files.refresh(START + 500, is_held=True)
    assert "STATUS_SUBMITTED (held)" in process.text("states")
    files.close(START + 500)
    assert process.run.lock.exists()


def test_a_save_point_keeps_the_one_before(process: Process) -> None:
    """In its own directory; the file of an earlier run becomes `.old`."""
    files = process.start()
    files.record([*EVENTS[:8], (START + 7, SavePointReached(WORK))])
    saved = process.directory / "save_files" / "work-x.dag.save"
    assert "# Save file written at Start Node work" == saved.read_text().splitlines()[0]
    assert ["DONE make"] == [line for line in saved.read_text().splitlines() if line == "DONE make"]
    files.record([(START + 8, SavePointReached(WORK))])
    assert saved.with_name("work-x.dag.save.old").exists()
    files.close(START + 8)


def test_without_rescue_files_none_is_written(process: Process) -> None:
    """DAGMAN_MAX_RESCUE_NUM 0."""
    files = process.start(largest_rescue=0)
    stopping = WorkflowStopping(status=DagStatus.NODE_FAILED, exit_code=1)
    files.record([(START, started()), (START, changed((MAKE, NodeState.FAILED))), (START, stopping)])
    files.close(START)
    assert "No rescue DAG written because DAGMAN_MAX_RESCUE_NUM is 0" in process.log()
    assert [] == [*process.directory.glob("x.dag.rescue*")]


def test_a_state_file_that_cannot_be_written_is_a_line(process: Process) -> None:
    """And the workflow goes on."""
    (process.directory / "states").mkdir()
    files = process.start()
    files.record(EVENTS[:1])
    files.refresh(START)
    assert any(line.startswith("Warning: can't create ") for line in process.log())
    files.close(START)
