"""How many jobs a description makes, before any of them is made: that takes a while if they are very many."""

from typing import Final, NamedTuple

from kettle.submit.commands import NAMES
from kettle.submit.expansion import queues_of_clusters
from kettle.submit.late_materialization import COMMANDS
from kettle.submit.statements import Description

_LATE: Final = frozenset(
    spelling.lower()
    for name, attribute in COMMANDS.items()
    for spelling in (name, *NAMES[name], f"MY.{attribute}")
)


class ExpectedJobs(NamedTuple):
    """Those of one cluster."""

    jobs: int
    late: bool
    """Whether they are to come into the queue little by little."""


def expected_jobs(description: Description) -> list[ExpectedJobs]:
    """
    Of each cluster in order.

    Raises NoJobError: there are none.
    """
    return [
        ExpectedJobs(
            jobs=sum(queue.iteration.count * len(queue.iteration.rows) for queue in queues),
            late=any(not _LATE.isdisjoint(queue.assignments) for queue in queues),
        )
        for queues in queues_of_clusters(description)
    ]
