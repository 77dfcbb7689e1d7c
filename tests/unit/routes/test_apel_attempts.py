"""Runs of a job that ran more than once."""

from kettle.routes.apel import apel_records, batch_text, blah_text, read_identities
from kettle.routes.apel_attempts import ended_runs, is_run_again, told_apart
from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending, ExitRecord, Usage
from kettle_wire.codes import VacateCode
from kettle_wire.events import Event
from kettle_wire.events.job import JobAssigned, JobCompleted, JobStarted, JobTold, JobVacated

RULES = read_identities("anna /CN=anna /vo", "map")
AD: Ad = {
    "ClusterId": 7,
    "ProcId": 0,
    "GlobalJobId": "schedd@pool#7.0#1",
    "Owner": "anna",
    "JobStartDate": 1000,
    "CompletionDate": 3010,
    "RemoteWallClockTime": 160.0,
    "RemoteUserCpu": 150,
    "GridJobId": "batch slurm here slurm/20261125/12",
    "NumShadowStarts": 3,
    "RequestCpus": 2,
}


def told(attempt: int, number: int) -> JobTold:
    name = f'"batch slurm here slurm/20261125/{number}"'
    return JobTold(attempt=attempt, id=f"{attempt}", attributes={"GridJobId": name})


def vacated(attempt: int, wall: float) -> JobVacated:
    ending = Ending(code=VacateCode.StartdException, reason="its machine failed")
    return JobVacated(
        attempt=attempt, ending=ending, usage=Usage(wall=wall, user_cpu=wall / 2, memory_kib=10 * attempt)
    )


EVENTS: list[tuple[float, Event]] = [
    (990.0, JobAssigned(attempt=1, claim="c", slot="s", startd="d")),
    (991.0, told(1, 10)),
    (1000.0, JobStarted(attempt=1, at=1001.0)),
    (1105.0, vacated(1, 100.0)),
    (2000.0, JobAssigned(attempt=2, claim="c", slot="s", startd="d")),
    (2001.0, vacated(2, 0.0)),
    (2900.0, JobAssigned(attempt=3, claim="c", slot="s", startd="d")),
    (2901.0, told(3, 12)),
    (2950.0, JobStarted(attempt=3, at=2950.0)),
    (
        3020.0,
        JobCompleted(attempt=3, exit=ExitRecord(code=0, at=3010.0), usage=Usage(wall=60.0, user_cpu=59.0)),
    ),
]


def test_each_run_has_its_number_and_its_time() -> None:
    """What never ran is none; what is recorded twice, or read in pieces, is told once."""
    runs = ended_runs([*EVENTS, *EVENTS])
    assert [(1, 1001.0, 1105.0), (3, 2950.0, 3010.0)] == [
        (each.number, each.began, each.ended) for each in runs
    ]
    records = apel_records(told_apart(AD, runs), RULES)
    assert (
        "schedd@pool#7.0#1|anna|100|50|0|1001|1105|10|0|2|1\nschedd@pool#7.0#1#3|anna|60|59|0|2950|3010|0|0|2|1\n"
        == batch_text(records)
    )
    assert ['"lrmsID=10"', '"lrmsID=12"'] == [
        line.split(" ")[6] for line in blah_text(records, "ce:9619/q").splitlines()
    ]


def test_runs_that_do_not_add_up_are_not_believed() -> None:
    """The record is gone, or is that of another job with this number: the job is told of as one."""
    assert [AD] == told_apart(AD, [])
    assert [AD] == told_apart(AD, ended_runs(EVENTS[:5]))
    assert 2 == len(told_apart(AD, ended_runs(EVENTS)))


def test_only_jobs_that_ran_again_are_looked_into() -> None:
    """All others have one run, and their ad tells of it."""
    assert [True, False, False] == [is_run_again(each) for each in (AD, AD | {"NumShadowStarts": 1}, {})]
