"""
What a document may say and no machine does: it is refused where it stands, instead of being passed over.
"""

from collections.abc import Iterator

from kettle.jobs.nodes import MOST_NODES
from kettle.prominence.faults import Fault, below
from kettle_wire.prominence.job import Job
from kettle_wire.tasks import MPI


def not_carried_out(job: Job, pointer: str = "") -> Iterator[Fault]:
    """A fault for each part of a sound job that would have no effect."""
    if job.resources.total_cpus_range:
        where = below(pointer, "resources", "totalCpusRange")
        yield Fault(where, "the number of nodes is not chosen for a job yet: write nodes, and cpus of each")
    if job.resources.nodes > 1:
        yield from _of_nodes(job, pointer)
    if job.storage:
        yield Fault(below(pointer, "storage"), "no machine mounts storage yet: name files as artifacts")
    for number, task in enumerate(job.tasks):
        where = below(pointer, "tasks", number)
        if task.app:
            yield Fault(below(where, "app"), "applications of SCIF images are not run yet: write cmd")
        if task.image_pull_credential:
            sentence = "images are not pulled with credentials yet: use an image that is public, or upload it"
            yield Fault(below(where, "imagePullCredential"), sentence)


def _of_nodes(job: Job, pointer: str) -> Iterator[Fault]:
    """What several nodes do together: the ranks of MPI tasks, in one container on each."""
    nodes, where = job.resources.nodes, below(pointer, "resources", "nodes")
    if nodes > MOST_NODES:
        yield Fault(where, f"nodes is {nodes}, and a job has at most {MOST_NODES}")
    for name, choice in (
        ("cpusRange", job.resources.cpus_range),
        ("cpusOptions", job.resources.cpus_options),
    ):
        if choice:
            why = f"nodes is {nodes}, and each could get another number of CPUs: write cpus"
            yield Fault(below(pointer, "resources", name), why)
    if job.policies.run_serial_tasks_on_all_nodes:
        where_serial = below(pointer, "policies", "runSerialTasksOnAllNodes")
        yield Fault(
            where_serial,
            "tasks without MPI run on node 0 alone: leave runSerialTasksOnAllNodes out, or call such a program in an MPI task with "
            "procsPerNode 1",
        )
    parallel = [number for number, task in enumerate(job.tasks) if task.type in MPI]
    if not parallel:
        yield Fault(
            where,
            f"nodes is {nodes}, and no task is of type openmpi, mpich or intelmpi: {nodes - 1} of them would have nothing to do",
        )
        return
    first = job.tasks[parallel[0]].image
    for number in parallel[1:]:
        if (image := job.tasks[number].image) != first:
            yield Fault(
                below(pointer, "tasks", number, "image"),
                f"the MPI tasks of a job of several nodes have one image, which is {first} in the first of them, and not {image}",
            )
