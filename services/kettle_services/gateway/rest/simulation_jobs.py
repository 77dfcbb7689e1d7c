"""What the job of a simulation says, and what its ad and its files tell of it."""

from datetime import UTC, datetime
from typing import Final

import msgspec

from kettle.jobs.quoting import join_v2
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.codes import HoldCode, JobStatus, Universe
from kettle_wire.rest.simulations import NewSimulation, SimulationState, SimulationView
from kettle_wire.simulations import SimulationProgress

STUDY: Final = "study.toml"
TABLE: Final = "jobs.parquet"
DRAWINGS: Final = "drawings"
SIMULATION: Final = "KettleSimulation"
"""Attribute of the job: true."""
_DISK_KIB: Final = 1 << 20
_LONGEST: Final = 2000
"""Characters of what went wrong."""
_STATES: Final[dict[int, SimulationState]] = {
    JobStatus.IDLE: "queued",
    JobStatus.RUNNING: "running",
    JobStatus.TRANSFERRING_OUTPUT: "running",
    JobStatus.SUSPENDED: "running",
    JobStatus.REMOVED: "removed",
    JobStatus.HELD: "held",
}


class SimulationTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway lets one simulation and one person have."""

    python: str
    """Of a machine on which a simulation runs, with this package."""
    of_one: int
    """Simulations of one person that are not over."""
    memory: int
    """MiB."""
    seconds: int
    kept: int
    """Seconds for which a result is kept."""


def job_ad(new: NewSimulation, terms: SimulationTerms) -> Ad:
    """The job that plays a study; what it writes comes back when it has ended."""
    words = ["-P", "-m", "kettle_services.cli", "simulate", "run", STUDY, "--json", "--progress"]
    for seed in new.seeds:
        words += ["--seed", f"{seed}"]
    made: list[str] = []
    if new.skip_bad:
        words.append("--skip-bad")
    if new.table:
        words += ["--jobs", TABLE]
        made.append(TABLE)
    if new.drawings:
        words += ["--svg", DRAWINGS]
        made.append(DRAWINGS)
    return {
        SIMULATION: True,
        "JobUniverse": int(Universe.VANILLA),
        "Cmd": terms.python,
        "TransferExecutable": False,
        "Arguments": join_v2(words),
        "Environment": "",
        "In": "/dev/null",
        "TransferIn": False,
        "Out": "result.json",
        "Err": "progress.log",
        "ShouldTransferFiles": "YES",
        "WhenToTransferOutput": "ON_EXIT",
        "TransferInput": ",".join([STUDY, *(file.name for file in new.files)]),
        "TransferOutput": ",".join(made),
        "RequestCpus": 1,
        "RequestMemory": terms.memory,
        "RequestDisk": _DISK_KIB,
        "Requirements": Expr(
            "(TARGET.Cpus >= RequestCpus) && (TARGET.Memory >= RequestMemory) && (TARGET.Disk >= RequestDisk)"
        ),
        "AllowedExecuteDuration": terms.seconds,
        "JobBatchName": new.name or "simulation",
        "LeaveJobInQueue": Expr(
            f"JobStatus == {int(JobStatus.COMPLETED)} && time() - EnteredCurrentStatus < {terms.kept}"
        ),
    }


def told(ad: Ad, schedd: str) -> SimulationView:
    """What the ad of its job tells."""
    status, reason = ad.get("JobStatus"), ""
    state = _STATES.get(status if isinstance(status, int) else 0, "queued")
    if status == JobStatus.COMPLETED:
        state = "done" if ad.get("ExitCode") == 0 and ad.get("ExitBySignal") is not True else "failed"
        reason = "" if state == "done" else "its job has ended without a result: look at its files"
    elif state == "held" and ad.get("HoldReasonCode") == HoldCode.SpoolingInput:
        state = "queued"
    elif state == "held":
        reason = f"{ad.get('HoldReason', 'nobody said why')}"
    return SimulationView(
        id=f"{ad['ClusterId']}.{ad['ProcId']}@{schedd}",
        state=state,
        name=f"{ad.get('JobBatchName', '')}",
        submitted=_moment(ad.get("QDate")),
        entered=_moment(ad.get("EnteredCurrentStatus")),
        problem=reason,
    )


def last_progress(said: bytes) -> SimulationProgress | None:
    """The last whole line of progress in what it has said last."""
    for line in reversed(said.splitlines(keepends=True)):
        if line.endswith(b"\n") and line.startswith(b"{"):
            try:
                return msgspec.json.decode(line, type=SimulationProgress)
            except msgspec.MsgspecError:
                continue
    return None


def last_words(said: bytes) -> str:
    """What it has said last that is no progress: why it has failed."""
    lines = [line.decode(errors="replace") for line in said.splitlines() if not line.startswith(b"{")]
    return "\n".join(line for line in lines if line.strip())[-_LONGEST:]


def _moment(value: object) -> datetime | None:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) and value > 0 else None
