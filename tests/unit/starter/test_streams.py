"""
Streams that are files of the submitter while the job writes.
"""

import os
import socket
from pathlib import Path

import msgspec
import pytest

from kettle.execution.attempt import JobSpec
from kettle.execution.jobad import JobAd
from kettle.execution.process import Account
from kettle.starter.program import program_of
from kettle.wire.ads.types import Ad, Scalar
from kettle.wire.commands.startd import ClaimKey
from kettle.wire.jobs import JobId

SPEC = JobSpec(
    key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="schedd", execute="/x", state="/y",
    slot="slot1", cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0, began=0.0, deadline=0.0,
    sequence=0,
)  # fmt: skip


def streams(iwd: Path, account: Account | None = None, **changes: Scalar) -> tuple[str, str]:
    ad: Ad = {
        "Cmd": "/bin/true", "Iwd": str(iwd), "Out": "logs/out", "Err": "logs/err", "StreamOut": True, "StreamErr": False,
        "ShouldTransferFiles": "IF_NEEDED", "FileSystemDomain": socket.gethostname(),
    }  # fmt: skip
    ad |= changes
    spec = SPEC if account is None else msgspec.structs.replace(SPEC, account=account)
    program = program_of(spec, JobAd(ad), "/sandbox")
    return program.stdout, program.stderr


@pytest.fixture
def iwd(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path


def test_a_stream_that_is_wanted_is_the_file_itself(iwd: Path) -> None:
    """
    Where the file system is shared; the other one comes back with the results.
    """
    assert (f"{iwd}/logs/out", "/sandbox/_condor_stderr") == streams(iwd)
    assert (f"{iwd}/logs/out", f"{iwd}/logs/err") == streams(iwd, StreamErr=True)
    assert (f"{iwd}/logs/out", f"{iwd}/logs/out") == streams(iwd, Err="logs/out")


def test_elsewhere_it_comes_back_with_the_results(iwd: Path) -> None:
    """
    On another file system, without a place, or where nobody asked for it.
    """
    sandbox = "/sandbox/_condor_stdout"
    assert sandbox == streams(iwd, FileSystemDomain="elsewhere.example")[0]
    assert sandbox == streams(iwd, Out="none/out")[0]
    assert sandbox == streams(iwd, StreamOut=False)[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another account")
def test_an_account_that_may_not_write_there_does_not(iwd: Path) -> None:
    (iwd / "logs").chmod(0o755)
    assert "/sandbox/_condor_stdout" == streams(iwd, Account(65534, 65534))[0]
