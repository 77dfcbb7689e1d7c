"""How many jobs a description makes, before any of them is made: that takes a while if they are very many."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kettle.submit.commands import NAMES
from kettle.submit.expansion import queues_of_clusters
from kettle.submit.late_materialization import COMMANDS
from kettle.submit.statements import Description

MANY: Final = 20_000
"""Jobs of a cluster that take a while to make and to send: the access point is asked about them before."""
_LATE: Final = frozenset(
    spelling.lower()
    for name, attribute in COMMANDS.items()
    for spelling in (name, *NAMES[name], f"MY.{attribute}")
)


class ExpectedJobs(NamedTuple):
    """The jobs of one cluster."""

    jobs: int
    late: bool
    """Whether they are to come into the queue little by little."""


def are_many(expected: Iterable[ExpectedJobs]) -> bool:
    """Whether the access point is to be asked about one of the clusters before its jobs are made."""
    return any(each.jobs >= MANY for each in expected)


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
