"""Which jobs of a queue need several slots at the same time, and how many."""

from kettle_services.schedd.domain.queue.fold import Queue
from kettle_wire.codes import Universe
from kettle_wire.jobs import JobId


def node_range(queue: Queue, job: JobId) -> tuple[int, int]:
    """How many slots a job needs at the same time, and how many it takes if there are more."""
    return queue.clusters[job.cluster].nodes_of(job.proc)


def is_parallel(queue: Queue, job: JobId) -> bool:
    """Whether a job gets its claims together, be it one only."""
    return queue.universe(job) == Universe.PARALLEL
