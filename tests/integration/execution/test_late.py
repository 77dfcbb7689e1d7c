"""
A job that was ended before it began does not begin: a starter listens while it prepares (law: no start after the lease).
"""

import fcntl
import hashlib
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path

import msgspec
import pytest

from kettle.execution.attempts.job_spec import Input, JobSpec
from kettle.execution.attempts.messages import EndJob, RunJob, frame
from kettle.execution.attempts.stored_reports import load_all
from kettle.execution.containers.policy import ContainerPolicy, FoundRuntime
from kettle.execution.system.linux import boottime, start_time
from kettle.testing.patience import PATIENCE_S
from kettle_services.startd.starters import orphan_cleanup
from kettle_services.starter.job_loop import run_starter
from kettle_services.starter.reports.final import StarterProcess
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.starter import Starter
from kettle_wire.ads import Ad
from kettle_wire.attempts import Ending
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import FinalReport

IMAGE = b"no archive"
JOB: Ad = {"Cmd": "/bin/sh", "TransferExecutable": False}
CONTAINED: Ad = {**JOB, "WantContainer": True, "ContainerImage": "x.tar", "ContainerImageSource": "cedar"}


@pytest.fixture
def place() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="kettle-") as name:
        for directory in ("execute", "reports", "drafts", "images"):
            (Path(name) / directory).mkdir()
        yield Path(name)


@pytest.fixture
def spec(place: Path) -> JobSpec:
    policy = ContainerPolicy(
        runtimes=[FoundRuntime("bubblewrap", "/bin/false")], images=str(place / "images"), limit=1 << 20
    )
    return JobSpec(
        key=ClaimKey("claim", "secret"), job=JobId(1, 0), attempt=1, schedd="schedd", execute=str(place / "execute"),
        state=str(place), slot="slot1", cpus=1, memory=64, disk=1000,
        ad={**JOB, "Arguments": f"-c 'echo ran > {place}/ran'"}, machine_ad="",
        inputs=[Input("x.tar", 0o644, data=IMAGE)], received=0, began=boottime(), deadline=boottime() + 60, sequence=0,
        containers=policy,
    )  # fmt: skip


def a_starter(spec: JobSpec, before: Callable[[socket.socket], None]) -> tuple[int, socket.socket]:
    """A starter that carries out `spec`, and our end of its line; `before` is called with it first."""
    ours, theirs = socket.socketpair()
    before(ours)
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()
            Starter(StarterProcess(StartdConnection(theirs), -1), RunJob(spec), last=True).run_job()
        finally:
            os._exit(0)
    theirs.close()
    return pid, ours


def told(place: Path, pid: int) -> Ending:
    """Why the attempt ended, by the starter's final report."""
    os.waitpid(pid, 0)
    (stored,) = load_all(str(place / "reports"))
    assert isinstance(stored.report.body, FinalReport)
    assert stored.report.body.result.exit is None
    assert stored.report.body.result.ending is not None
    return stored.report.body.result.ending


def test_a_job_whose_lease_has_ended_is_not_started(place: Path, spec: JobSpec) -> None:
    """However long it took to prepare it."""
    late = msgspec.structs.replace(spec, deadline=boottime() - 1)
    pid, line = a_starter(late, lambda line: None)
    with line:
        assert 1008 == told(place, pid).code
    assert not (place / "ran").exists()


def test_a_job_that_was_removed_meanwhile_is_not_started(place: Path, spec: JobSpec) -> None:
    """There is nobody to be asked softly."""
    pid, line = a_starter(spec, lambda line: line.sendall(frame(EndJob(1023, "removed"))))
    with line:
        assert (1023, "removed") == ((body := told(place, pid)).code, body.reason)
    assert not (place / "ran").exists()


def test_an_order_to_end_may_come_with_the_one_to_run(place: Path, spec: JobSpec) -> None:
    """Both at once: the job is not started, and nothing more has to come for that."""
    ours, theirs = socket.socketpair()
    ours.sendall(frame(RunJob(spec)) + frame(EndJob(1023, "removed")))
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            ours.close()
            run_starter(theirs, -1)
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        assert (1023, "removed") == ((body := told(place, pid)).code, body.reason)
    assert not (place / "ran").exists()


@pytest.fixture
def waiting(place: Path, spec: JobSpec) -> Generator[JobSpec]:
    """A job in a container whose image somebody else unpacks, for as long as the test lasts."""
    with (place / "images" / f"{hashlib.sha256(IMAGE).hexdigest()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield msgspec.structs.replace(spec, ad={**spec.ad, **CONTAINED})


def until_it_prepares(starter: int) -> int:
    """The child of a starter."""
    until = time.monotonic() + PATIENCE_S
    while not (found := Path(f"/proc/{starter}/task/{starter}/children").read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(found[0])


def test_a_starter_listens_while_its_image_is_waited_for(place: Path, waiting: JobSpec) -> None:
    """An order to end the job is obeyed at once, and the child that waits is gone."""
    pid, line = a_starter(waiting, lambda line: None)
    with line:
        child = until_it_prepares(pid)
        line.sendall(frame(EndJob(1023, "removed")))

        assert 1023 == told(place, pid).code
    assert not Path(f"/proc/{child}").exists()
    assert [] == list((place / "execute").iterdir())


def test_the_lease_ends_while_the_image_is_waited_for(place: Path, waiting: JobSpec) -> None:
    """It is not waited for any longer."""
    pid, line = a_starter(msgspec.structs.replace(waiting, deadline=boottime() + 0.5), lambda line: None)
    with line:
        assert 1008 == told(place, pid).code


def test_what_prepares_for_a_killed_starter_is_found(place: Path, waiting: JobSpec) -> None:
    """By the startd that cleans up: it works in the sandbox."""
    pid, line = a_starter(waiting, lambda line: None)
    with line:
        child = until_it_prepares(pid)
        while Path(f"/proc/{child}/cwd").readlink() != place / "execute" / waiting.id.sandbox:
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert b"" == received(line)

    assert orphan_cleanup.remove_remains(str(place / "execute" / waiting.id.sandbox), None, None)
    assert [] == list((place / "execute").iterdir())
    until_it_is_gone(child)


def until_it_is_gone(pid: int) -> None:
    """One that was killed has left the sandbox before it has ended."""
    until = time.monotonic() + PATIENCE_S
    while start_time(pid) is not None:
        assert time.monotonic() < until
        time.sleep(0.01)


def received(line: socket.socket) -> bytes:
    """What comes after everything that was said: nothing, because nobody else holds the other end."""
    line.settimeout(PATIENCE_S)
    while line.recv(1 << 16):
        pass
    return b""
