"""Core files among what a job left."""

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle_services.starter.execution.core_files import cores_of, take_core
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId

DUMPED = signal.SIGSEGV | 0x80


@pytest.mark.parametrize(
    ("ad", "listed"),
    [({}, None), ({"TransferOutput": "a"}, "a,core.3.1"), ({"TransferOutput": ""}, "core.3.1")],
)
def test_a_core_file_is_a_result(tmp_path: Path, ad: Ad, listed: str | None) -> None:
    """Under the job's number, also of a job that says what its results are."""
    (tmp_path / "core.77").write_text("memory")
    job = JobAd(ad)

    assert os.WCOREDUMP(DUMPED)
    assert "core.3.1" == take_core(Sandbox(str(tmp_path)), job, {}, JobId(3, 1), DUMPED)
    assert "memory" == (tmp_path / "core.3.1").read_text()
    assert listed == job.text("TransferOutput")


def test_a_file_of_that_name_is_none_by_itself(tmp_path: Path) -> None:
    """Not if nothing was dumped, not if it was there before."""
    (tmp_path / "core").write_text("an input")
    sandbox = Sandbox(str(tmp_path))

    assert None is take_core(sandbox, JobAd({}), {}, JobId(3, 1), signal.SIGKILL)
    assert "" == take_core(sandbox, JobAd({}), sandbox.catalogue(), JobId(3, 1), DUMPED)


def test_nobody_but_the_job_leaves_a_core_file() -> None:
    """
    The starter's own limit is the job's while that is started, and none again afterwards, also if that fails.
    """
    before = resource.getrlimit(resource.RLIMIT_CORE)
    if before[1] == 0:
        pytest.skip("the hard limit of core files is 0 here: no job can leave one")
    try:
        with suppress(OSError), cores_of(JobAd({"CoreSize": -1})):
            assert before[1] == resource.getrlimit(resource.RLIMIT_CORE)[0]
            raise OSError("no program")
        assert (0, before[1]) == resource.getrlimit(resource.RLIMIT_CORE)
        with cores_of(JobAd({})):
            assert (0, before[1]) == resource.getrlimit(resource.RLIMIT_CORE)
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
