"""Usage added up from attempts."""

from kettle.audit.attempt_sums import Sum, Sums
from kettle_wire.attempts import Ending, Usage
from kettle_wire.codes import VacateCode
from kettle_wire.events import ClusterSubmitted, JobEdited, JobVacated


def test_an_attempt_counts_for_the_cores_that_its_job_asked_for_when_it_ended() -> None:
    """
    A request that was edited counts from then on, an expression as one core, and other edits for nothing.
    """
    sums = Sums()
    ended = JobVacated(
        attempt=1, ending=Ending(code=VacateCode.UserVacateJob, reason="moved"), usage=Usage(wall=1.0)
    )
    submitted = ClusterSubmitted(cluster=1, owner="ada", ad={"RequestCpus": 300}, columns=[], rows=[[], []])
    sums.feed("cluster/1", submitted)
    sums.feed("job/1.0", JobEdited(attributes={"requestcpus": 2}))
    sums.feed("job/1.0", JobEdited(attributes={"JobPrio": 7}))
    for stream in ("job/1.0", "job/1.1"):
        assert "ada" == sums.feed(stream, ended)
    assert {"ada": Sum(attempts=2, wall=2_000_000, slot_time=302_000_000)} == sums.owners
