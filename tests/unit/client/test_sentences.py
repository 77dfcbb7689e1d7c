"""What people are told of events of jobs."""

import pytest

from kettle.client.events.sentences import sentence
from kettle_wire.events import Event, JobRouted, JobUnrouted


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (JobRouted(route="Here", number=1, attributes={"RequestMemory": 64}), "route Here takes it to this pool"),
        (JobRouted(route="Far", number=1, attributes={"gridResource": "batch a"}), "route Far takes it to batch a"),
        (JobUnrouted(number=2, reason="Far: queue is undefined"), "waits for a route: Far: queue is undefined"),
        (JobUnrouted(number=2, reason="the routes are others", by="ada"), "waits for a route (ada): the routes are others"),
    ],
)  # fmt: skip
def test_routes_of_jobs_are_told(event: Event, said: str) -> None:
    """Where a job goes by its route, or why it has none."""
    assert said == sentence(event)[0]
