"""How many jobs of the queue run, or could, where they were submitted."""

from kettle_services.schedd.domain.jobs.universes import AT_HOME
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_wire.ads import Ad


def totals(queue: Queue) -> Ad:
    """How many jobs run, or could, on the machine of their schedd: as the schedd's ad says it."""
    ad: Ad = {}
    for universe, word in AT_HOME.items():
        ad[f"Total{word}JobsRunning"] = sum(
            count for (_, other), count in queue.attendance.items() if other == universe
        )
        ad[f"Total{word}JobsIdle"] = sum(
            len(jobs)
            for autoclusters in queue.at_home.values()
            for jobs in autoclusters.values()
            if (best := jobs.best()) is not None and queue.universe(best[1]) == universe
        )
    return ad
