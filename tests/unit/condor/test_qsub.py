"""condor_qsub: what scripts of PBS and Grid Engine become."""

import contextlib
from pathlib import Path

import pytest

from kettle_services.condor.commands import qsub
from kettle_services.condor.errors import ToolError

SCRIPT = """#!/bin/sh
#PBS -N sweep -l mem=2gb,procs=4
#$ -t 1-5:2 -j oe
#PBS -v "A=it's one,B=2"   # variables
echo $SGE_TASK_ID
"""


def translated(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert 0 == qsub.run("condor_qsub", ["--print", "--test", *words])
    return capsys.readouterr().out.splitlines()


def test_a_script_with_its_own_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines of the script are options, and what is typed counts more."""
    (tmp_path / "job.sh").write_text(SCRIPT)
    with contextlib.chdir(tmp_path):
        lines = translated(
            ["-N", "other", "-S", "/bin/bash", "-cwd", "-r", "n", "-h", "job.sh", "two words", "3"], capsys
        )
    assert [
        "universe = vanilla",
        "batch_name = other",
        "executable = /bin/bash",
        "transfer_executable = false",
        "arguments = \"job.sh 'two words' 3\"",
        f"transfer_input_files = {tmp_path}/job.sh",
        "should_transfer_files = yes",
        "when_to_transfer_output = on_exit",
        f"initialdir = {tmp_path}",
        "output = other.o$(ClusterId).$(Task)",
        "error = other.o$(ClusterId).$(Task)",
        "notification = never",
        "hold = true",
        "request_memory = 2GB",
        "request_cpus = 4",
        "requirements = NumJobStarts == 0",
        "periodic_remove = JobStatus == 1 && NumJobStarts > 0",
        "environment = \"'A=it''s one' B=2 SGE_TASK_ID=$(Task) PBS_ARRAYID=$(Task) SGE_TASK_FIRST=1 SGE_TASK_LAST=5 SGE_TASK_STEPSIZE=2\"",
        "queue Task in (1 3 5)",
    ] == lines


def test_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With -b y it is no file; nodes are cores and GPUs of one machine."""
    lines = translated(
        ["-b", "y", "-l", "nodes=1:ppn=8:gpus=1,walltime=1:00", "-S", "/bin/sh", "-e", "/tmp", "echo", "a b"],
        capsys,
    )
    assert "arguments = \"-c 'echo ''a b'''\"" in lines
    assert {"request_cpus = 8", "request_gpus = 1", "error = /tmp/echo.e$(ClusterId)", "queue"} <= set(lines)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-hold_jid", "7", "x"], "-hold_jid is not carried out; jobs that wait for each other"),
        (["-K", "x"], "Unrecognized argument -K"),
        (["--tets", "x"], "Unrecognized argument --tets; do you mean -test"),
        (["-N"], "requires another parameter"),
        (["-b", "y", "-t", "5-1", "x"], "makes 0 tasks"),
        (["-b", "y", "-t", "all", "x"], "-t takes FIRST"),
        (["-b", "y", "-l", "nodes=4:ppn=2", "x"], "a job runs on one machine"),
        (["-b", "y", "-l", "mem=much", "x"], "-l mem takes a size"),
        (["/none/there.sh"], "/none/there.sh: No such file"),
    ],
)
def test_what_cannot_be_translated_is_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(ToolError, match=sentence):
        qsub.run("condor_qsub", ["--test", *words])
