"""What a starter does itself for a program that cannot be executed."""

import os
from pathlib import Path

import pytest

from kettle.execution.attempts.job_spec import Account
from kettle.execution.processes.launch import LaunchError, Program, launch


def test_what_is_no_file_is_not_opened_to_see_what_it_is(tmp_path: Path) -> None:
    """
    A job names a pipe as its program: who reads from one takes what is in it, or waits for it without end; a device may do anything.
    """
    path, said = tmp_path / "pipe", b"#!/bin/interpreter\n".ljust(256)
    os.mkfifo(path, 0o777)
    both = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    os.write(both, said)
    program = Program(
        path=str(path), arguments=[], environment={}, directory="/",
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull,
    )  # fmt: skip

    with pytest.raises(LaunchError, match=r"cannot execute .*/pipe: Permission denied$"):
        launch(program)

    assert said == os.read(both, 1024)
    os.close(both)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a job that runs as another account")
def test_what_a_job_may_not_read_it_is_not_told(tmp_path: Path) -> None:
    """Its program is a link to a script of root's."""
    secret = tmp_path / "secret"
    secret.write_text("#!/opt/secret/interpreter\n")
    secret.chmod(0o700)
    program = Program(
        path=str(secret), arguments=[], environment={}, directory="/",
        stdin=os.devnull, stdout=os.devnull, stderr=os.devnull, account=Account(1_999_999_001, 1_999_999_001),
    )  # fmt: skip

    with pytest.raises(LaunchError, match=r"cannot execute .*/secret: Permission denied$"):
        launch(program)
