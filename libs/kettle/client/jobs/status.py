"""What the ad of a job says first of all: which job it is, and where it stands."""

from collections.abc import Mapping
from typing import Final, Literal

from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId

Status = Literal["idle", "running", "suspended", "removed", "completed", "held"]

_STATUS: Final[Mapping[object, Status]] = {
    JobStatus.IDLE: "idle", JobStatus.RUNNING: "running", JobStatus.REMOVED: "removed",
    JobStatus.COMPLETED: "completed", JobStatus.HELD: "held", JobStatus.SUSPENDED: "suspended",
}  # fmt: skip


def status_of(ad: Ad) -> Status:
    """The status that a job ad tells."""
    return _STATUS.get(ad.get("JobStatus"), "idle")


def id_of(ad: Ad) -> JobId:
    """The job that an ad is about."""
    cluster, proc = ad.get("ClusterId"), ad.get("ProcId")
    return JobId(cluster if isinstance(cluster, int) else 0, proc if isinstance(proc, int) else 0)
