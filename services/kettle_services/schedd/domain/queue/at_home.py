"""How many jobs of the queue run, or could, where they were submitted."""

from collections.abc import Mapping

from kettle_services.schedd.domain.jobs.universes import AT_HOME
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.runnable import Runnable
from kettle_wire.ads import Ad
from kettle_wire.jobs import JobId


def in_order(
    demand: Mapping[str, Mapping[int, Runnable]], asked: Mapping[tuple[str, int], int], most: int
) -> list[tuple[JobId, str, int, int]]:
    """
    The jobs that nobody asks a claim for yet, in the order of their priority over all submitters and autoclusters:
    the first of several alike, their submitter and autocluster, and how many of them follow each other.

    `asked` are those for which claims are being asked; at most `most` jobs of each autocluster are looked at.
    """
    places = sorted(
        (place, submitter, autocluster)
        for submitter, autoclusters in demand.items()
        for autocluster, jobs in autoclusters.items()
        for place in jobs.first(most + asked.get((submitter, autocluster), 0))[
            asked.get((submitter, autocluster), 0) :
        ]
    )
    found: list[tuple[JobId, str, int, int]] = []
    for (_, cluster, proc), submitter, autocluster in places:
        if found and found[-1][1:3] == (submitter, autocluster):
            found[-1] = (*found[-1][:3], found[-1][3] + 1)
        else:
            found.append((JobId(cluster, proc), submitter, autocluster, 1))
    return found


def totals(queue: Queue) -> Ad:
    """How many jobs run, or could, on the machine of their schedd: as the schedd's ad says it."""
    ad: Ad = {}
    for universe, word in AT_HOME.items():
        ad[f"Total{word}JobsRunning"] = sum(
            count for (_, other), count in queue.attendance.jobs.items() if other == universe
        )
        ad[f"Total{word}JobsIdle"] = sum(
            len(jobs)
            for autoclusters in queue.demand.at_home.values()
            for jobs in autoclusters.values()
            if (best := jobs.best()) is not None and queue.universe(best[1]) == universe
        )
    return ad
