"""Which variables a job has, and who wins where several give the same one."""

from pathlib import Path
from typing import Any

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.job_environment.helper_programs import INSIDE
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.job_environment.variables import PATH, job_environment
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId


def spec(place: Path) -> JobSpec:
    """A job of one core."""
    return JobSpec(
        key=ClaimKey("c", "s"), job=JobId(1, 0), attempt=1, schedd="schedd", execute=str(place), state=str(place),
        slot="slot1@n1", cpus=1, memory=1, disk=1, ad={}, machine_ad="", inputs=[], received=0, began=0.0,
        deadline=0.0, sequence=0,
    )  # fmt: skip


def test_the_machines_owner_gives_variables_that_the_jobs_owner_may_change(tmp_path: Path) -> None:
    """
    What tells the job about itself is not changed by either; a PATH of the machine's keeps the helper programs.
    """
    given = {
        "PATH": "/site/bin",
        "XRD_PLUGINCONFDIR": "/site/plugins",
        "OMP_NUM_THREADS": "7",
        "_CONDOR_SLOT": "x",
    }
    job: dict[str, Any] = {"Environment": "OMP_NUM_THREADS=2"}
    of_the_site = msgspec.structs.replace(spec(tmp_path), environment=given)
    found = job_environment(of_the_site, JobAd(job), "/box", {}, contained=True)
    assert ("/site/plugins", "2", "slot1") == (
        found["XRD_PLUGINCONFDIR"],
        found["OMP_NUM_THREADS"],
        found["_CONDOR_SLOT"],
    )
    assert f"/site/bin:/box/{INSIDE}" == found["PATH"]
    usual = job_environment(spec(tmp_path), JobAd(job), "/box", {}, contained=True)
    assert f"{PATH}:/box/{INSIDE}" == usual["PATH"]
    assert "XRD_PLUGINCONFDIR" not in usual
