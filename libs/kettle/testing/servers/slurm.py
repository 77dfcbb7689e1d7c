"""A real Slurm cluster of one node for tests, on the loopback interface: munged, slurmctld and slurmd."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.held_port import held_port

_LOOK_S: Final = 0.05
_PROGRAMS: Final = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client"}
PARTITION: Final = "short"


def no_slurm() -> str:
    """Why there can be no Slurm here; empty if there can."""
    if os.geteuid():
        return "only root can start Slurm"
    for program, package in _PROGRAMS.items():
        if shutil.which(program) is None:
            return f"there is no {program} (Debian package {package})"
    return ""


class SlurmCluster:
    """A cluster that runs."""

    def __init__(self, place: Path) -> None:
        self.place: Final = place
        self.configuration: Final = place / "slurm.conf"
        self.hasty_configuration: Final = place / "hasty.conf"
        """For a client that soon gives up."""
        self.controller_port: Final = held_port()
        self._controller: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> str:
        """What one of its commands says."""
        environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        return ran.stdout

    def start_controller(self) -> None:
        """Have the controller answer."""
        words = [_path("slurmctld"), "-D", "-f", str(self.configuration)]
        self._controller = _started(words)
        _until(self._answers, "slurmctld does not answer")

    def _answers(self) -> bool:
        words = ["scontrol", "ping"]
        environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        return "UP" in ran.stdout

    def stop_controller(self) -> None:
        """End the controller, if it runs; what it knows is in its files."""
        if self._controller is not None:
            _end(self._controller)
        self._controller = None

    def freeze_controller(self) -> None:
        """Have it take questions and answer none."""
        assert self._controller is not None
        self._controller.send_signal(signal.SIGSTOP)

    def thaw_controller(self) -> None:
        """Have it answer again."""
        assert self._controller is not None
        self._controller.send_signal(signal.SIGCONT)

    @asynccontextmanager
    async def away(self) -> AsyncGenerator[None]:
        """Meanwhile nobody answers."""
        self.stop_controller()
        try:
            yield
        finally:
            self.start_controller()

    @asynccontextmanager
    async def silent(self) -> AsyncGenerator[None]:
        """Meanwhile the controller takes questions and answers none."""
        self.freeze_controller()
        try:
            yield
        finally:
            self.thaw_controller()

    def end_jobs(self) -> None:
        """End every job, while its node is there to end it."""
        if self._controller is None:
            self.start_controller()
        self.run("scancel", "--me")
        _until(lambda: not self.run("squeue", "--noheader", "--me").strip(), "jobs do not end")


@contextmanager
def slurm(
    scheduling: str = "batch_sched_delay=0,sched_interval=1", *, nodes: int = 1
) -> Generator[SlurmCluster]:
    """
    A cluster with one node of eight cores and 16 GB, or with several `nodes` of one core and 2 GB, in partition `short`,
    where jobs last an hour at most.

    `scheduling` is its SchedulerParameters. All nodes are on this host, each with a slurmd of its own.
    """
    with tempfile.TemporaryDirectory(prefix="kettle-slurm-", dir="/tmp") as name, ExitStack() as stack:
        cluster = SlurmCluster(Path(name))
        cluster.place.chmod(0o755)
        socket_path = cluster.place / "munge.socket"
        names = _write_configuration(cluster, socket_path, scheduling, nodes)
        key = cluster.place / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        files = [f"--{each}-file={cluster.place / each}" for each in ("pid", "log", "seed")]
        munged = _started(
            [
                _path("munged"),
                "--force",
                "--foreground",
                f"--key-file={key}",
                f"--socket={socket_path}",
                *files,
            ]
        )
        stack.callback(_end, munged)
        _until(socket_path.exists, "munged does not answer")
        stack.callback(cluster.stop_controller)
        cluster.start_controller()
        for each in names:
            node = _started([_path("slurmd"), "-D", "-N", each, "-f", str(cluster.configuration)])
            stack.callback(_end, node)
        idle = ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"]
        _until(lambda: len(cluster.run(*idle).split()) == len(names), "the nodes do not come")
        stack.callback(cluster.end_jobs)
        yield cluster


def _write_configuration(cluster: SlurmCluster, socket_path: Path, scheduling: str, nodes: int) -> list[str]:
    """Returns the names of the nodes."""
    host = socket.gethostname().partition(".")[0]
    place = cluster.place
    names = [host] if nodes == 1 else [f"node{number}" for number in range(1, nodes + 1)]
    has = "CPUs=8 RealMemory=16000" if nodes == 1 else "CPUs=1 RealMemory=2000"
    described = "\n".join(
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={held_port()} {has} State=UNKNOWN"
        for name in names
    )
    for each in ("state", "spool"):
        (place / each).mkdir()
    cluster.configuration.write_text(
        f"""\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={cluster.controller_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={socket_path}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.%n.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters={scheduling}
KillWait=2
MessageTimeout=60
ReturnToService=2
{described}
PartitionName={PARTITION} Nodes={",".join(names)} Default=YES MaxTime=60 State=UP
"""
    )
    text = cluster.configuration.read_text()
    cluster.hasty_configuration.write_text(text.replace("MessageTimeout=60", "MessageTimeout=2"))
    return names


def _path(program: str) -> str:
    found = shutil.which(program)
    assert found is not None
    return found


def _started(words: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until(is_so: Callable[[], object], otherwise: str) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until, otherwise
        time.sleep(_LOOK_S)
