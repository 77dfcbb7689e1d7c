"""The jobs that play simulations: what they say, and what is told of them."""

from typing import Any, Final

import pytest

from kettle.jobs.quoting import split_v2
from kettle_services.gateway.rest.simulation_jobs import (
    SimulationTerms,
    job_ad,
    last_progress,
    last_words,
    told,
)
from kettle_wire.ads import Ad
from kettle_wire.codes import HoldCode, JobStatus
from kettle_wire.rest.simulations import NewSimulation, StudyFile
from kettle_wire.simulations import SimulationProgress

TERMS: Final = SimulationTerms(python="/opt/python", of_one=4, memory=512, seconds=60, kept=3600)
AD: Final[Ad] = {"ClusterId": 3, "ProcId": 0, "JobStatus": JobStatus.IDLE, "JobBatchName": "mine"}


def test_a_study_is_one_job_with_its_files_and_within_its_limits() -> None:
    new = NewSimulation(
        study="x",
        files=[StudyFile(name="trace.swf", text="")],
        seeds=[3],
        table=True,
        drawings=True,
        skip_bad=True,
    )
    ad = job_ad(new, TERMS)
    assert ["study.toml", "trace.swf"] == str(ad["TransferInput"]).split(",")
    assert ["jobs.parquet", "drawings"] == str(ad["TransferOutput"]).split(",")
    assert ("/opt/python", 512, 60) == (ad["Cmd"], ad["RequestMemory"], ad["AllowedExecuteDuration"])
    assert split_v2(str(ad["Arguments"]))[4:] == [
        *("run", "study.toml", "--json", "--progress", "--seed", "3", "--skip-bad"),
        *("--jobs", "jobs.parquet", "--svg", "drawings"),
    ]


@pytest.mark.parametrize(
    ("changed", "state", "problem"),
    [
        ({}, "queued", ""),
        ({"JobStatus": JobStatus.RUNNING}, "running", ""),
        ({"JobStatus": JobStatus.HELD, "HoldReasonCode": HoldCode.SpoolingInput}, "queued", ""),
        ({"JobStatus": JobStatus.HELD, "HoldReason": "it ran too long"}, "held", "it ran too long"),
        ({"JobStatus": JobStatus.COMPLETED, "ExitCode": 0}, "done", ""),
        ({"JobStatus": JobStatus.COMPLETED, "ExitCode": 1}, "failed", "ended without a result"),
        ({"JobStatus": JobStatus.COMPLETED, "ExitBySignal": True}, "failed", "ended without a result"),
        ({"JobStatus": JobStatus.REMOVED}, "removed", ""),
    ],
)
def test_the_state_of_a_simulation_is_that_of_its_job(changed: Ad, state: str, problem: str) -> None:
    view: Any = told({**AD, **changed}, "ap")
    assert ("3.0@ap", "mine", state) == (view.id, view.name, view.state)
    assert (problem in view.problem) if problem else view.problem == ""


def test_what_it_has_said_last_is_progress_or_what_went_wrong() -> None:
    line = b'{"run":1,"runs":2,"ended":5,"jobs":9}\n'
    progress = SimulationProgress(run=1, runs=2, ended=5, jobs=9)
    assert progress == last_progress(b'"jobs":3}\n' + line + b'{"run":1,"ru')
    assert last_progress(b"kettle: no\n{}\n") is None
    assert last_words(line + b"kettle: study.toml:3: no\n\n") == "kettle: study.toml:3: no"
