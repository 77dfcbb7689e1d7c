"""What the process of a DAG job reads of itself."""

from pathlib import Path

import pytest

from kettle_services.condor.dagman.own_job import OwnJob, own_job
from kettle_services.condor.errors import ToolError


def test_a_dag_job_knows_its_queue(tmp_path: Path) -> None:
    """It is the one whose jobs its number is of, whatever queue is the usual one where it runs."""
    (tmp_path / "ad").write_text(
        'ClusterId = 6\nProcId = 0\nIwd = "/home/ann"\nGlobalJobId = "ap1#6.0#1795662009"\n'
    )
    environ = {"_CONDOR_JOB_AD": f"{tmp_path / 'ad'}", "_CONDOR_SCHEDD_HOST": "schedd"}
    assert own_job(environ) == OwnJob(6, Path("/home/ann"), "", "", "ap1#6.0#1795662009")
    assert "ap1" == own_job(environ).schedd


def test_what_is_no_ad_of_a_job_is_refused(tmp_path: Path) -> None:
    """So is a start by hand."""
    (tmp_path / "ad").write_text("ClusterId = 6\n")
    with pytest.raises(ToolError, match="has no ClusterId or no Iwd"):
        own_job({"_CONDOR_JOB_AD": f"{tmp_path / 'ad'}"})
    with pytest.raises(ToolError, match="is the program of a job"):
        own_job({})
