"""
Bubblewrap runs outside of the container that it makes: nothing of the job's reaches it, and its word is checked.

A script stands for it here, because the real one says the truth.
"""

import os
import subprocess
from pathlib import Path

import pytest

from kettle.execution.containers.policy import ContainerError
from kettle.execution.containers.runtimes.bubblewrap import Bubblewrap
from kettle.execution.containers.runtimes.runtime import ContainerSpec
from kettle.execution.processes.launch import Program


def a_box(tmp_path: Path, **environment: str) -> ContainerSpec:
    program = Program(
        path="/bin/true", arguments=["x"], environment=environment, directory="/srv",
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull,
    )  # fmt: skip
    return ContainerSpec(
        program=program, sandbox=f"{tmp_path}/dir_1", area=str(tmp_path), skeleton=str(tmp_path), mounts=[]
    )


def checked(pid: int = 0) -> None:
    """Nothing is against it."""


def a_bubblewrap(tmp_path: Path, text: str) -> Bubblewrap:
    script = tmp_path / "bwrap"
    script.write_text(f"#!/bin/sh\n{text}\n")
    script.chmod(0o755)
    return Bubblewrap(str(script))


def test_it_has_none_of_the_jobs_environment(tmp_path: Path) -> None:
    """
    The job's variables come as options, through a descriptor; what is in its own environment finds it when it is left over.
    """
    script = f"cat /proc/$$/environ > {tmp_path}/environ; cat <&5 > {tmp_path}/told"
    with pytest.raises(ContainerError, match="could not set the container up"):
        a_bubblewrap(tmp_path, script).start(
            a_box(tmp_path, LD_PRELOAD="/proc/self/fd/0", A="b c"), None, checked
        )

    assert f"_KETTLE_SANDBOX={tmp_path}/dir_1\0" == (tmp_path / "environ").read_text()
    told = (tmp_path / "told").read_text().split("\0")
    at = told.index("--clearenv")
    assert ["--setenv", "LD_PRELOAD", "/proc/self/fd/0", "--setenv", "A", "b c"] == told[at + 1 : at + 7]


def test_a_process_that_is_not_its_child_is_not_taken_for_the_job(tmp_path: Path) -> None:
    """The named process gets the job's signals, so it has to be a process of the job."""
    with subprocess.Popen(["/bin/sleep", "60"]) as stranger:
        script = f"echo '{{\"child-pid\": {stranger.pid}}}' >&3; exec sleep 60"
        with pytest.raises(ContainerError, match="could not set the container up"):
            a_bubblewrap(tmp_path, script).start(a_box(tmp_path), None, checked)

        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("environment", [{"A": "1\0--bind\0/\0/"}, {"A\0--bind\0/\0/": "1"}])
def test_a_variable_cannot_become_an_option(tmp_path: Path, environment: dict[str, str]) -> None:
    """What separates options may not be in one: hold code 6."""
    with pytest.raises(ContainerError, match="NUL byte") as caught:
        a_bubblewrap(tmp_path, "exit 9").start(a_box(tmp_path, **environment), None, checked)
    assert 6 == caught.value.code


def test_more_variables_than_it_takes_are_the_jobs_fault(tmp_path: Path) -> None:
    """Hold code 6: it would fail on every machine."""
    with pytest.raises(ContainerError, match="more variables") as caught:
        a_bubblewrap(tmp_path, "exit 9").start(
            a_box(tmp_path, **{f"V{number}": "x" for number in range(3000)}), None, checked
        )
    assert 6 == caught.value.code
