"""What the REST interface shows of what is recorded of a job."""

from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.gateway.rest.job_past import JobPast
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_wire.commands.schedd import RecordedEvent
from kettle_wire.events import ClusterSubmitted, Event, JobEdited, encode
from kettle_wire.jobs import JobId


def recorded(stream: str, event: Event) -> RecordedEvent:
    return RecordedEvent(stream=stream, version=1, frame=1, at=1, data=encode(event))


def test_the_owner_reads_what_was_sealed_and_nobody_else_has_it() -> None:
    """An environment that was changed is opened for the owner of the job, and left out for others."""
    seal = AttributeSeal([bytes(32)])
    sealed = seal.sealed({"Environment": "A=canary", "JobPrio": 1}, "ada")
    submission = ClusterSubmitted(cluster=1, owner="ada", ad={}, columns=[], rows=[[]])
    past = JobPast(
        JobId(1, 0),
        "ap",
        [recorded("cluster/1", submission), recorded("job/1.0", JobEdited(attributes=sealed))],
    )
    shown = {
        name: past.records(Viewer.of(name, (), seal), None)[1].event["attributes"] for name in ("ada", "eve")
    }
    assert {"ada": {"Environment": "A=canary", "JobPrio": 1}, "eve": {"JobPrio": 1}} == shown
