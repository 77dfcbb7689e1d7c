"""
What a document may say and no machine does: it is refused where it stands, instead of being passed over.
"""

import math
from collections.abc import Iterator

from kettle.jobs.needed_tokens import MOST
from kettle.jobs.nodes import MOST_NODES
from kettle.prominence.faults import Fault, below
from kettle.prominence.pull_credentials import handle, is_of_registry
from kettle_wire.prominence.job import Job, Resources
from kettle_wire.tasks import MPI


def not_carried_out(job: Job, pointer: str = "") -> Iterator[Fault]:
    """A fault for each part of a sound job that would have no effect."""
    resources = job.resources
    least, most = node_range(resources)
    if resources.total_cpus_range and not resources.cpus:
        where = below(pointer, "resources", "totalCpusRange")
        yield Fault(where, "totalCpusRange is reached by the number of nodes: write cpus, those of each node")
    elif resources.total_cpus_range and least > most:
        first, last = resources.total_cpus_range
        where = below(pointer, "resources", "totalCpusRange")
        sentence = f"no number of nodes with {resources.cpus} CPUs each has from {first} to {last} CPUs"
        yield Fault(where, f"{sentence}: write another cpus, or a wider range")
    elif most > 1:
        yield from _of_nodes(job, pointer)
    if job.storage:
        yield Fault(
            below(pointer, "storage"),
            "no machine mounts storage: name files that are read as artifacts, and results as outputFiles or outputDirs",
        )
    yield from _of_images(job, pointer)


def node_range(resources: Resources) -> tuple[int, int]:
    """
    The least and the most nodes of a job, of which it gets as many as there are at a time; no number will do if the least is more.
    """
    if not resources.total_cpus_range:
        return resources.nodes, resources.nodes
    first, last = resources.total_cpus_range
    each = resources.cpus or 1
    least = math.ceil(first / each)
    return least, min(last // each, max(least, MOST_NODES))


def _of_images(job: Job, pointer: str) -> Iterator[Fault]:
    handles = set[str]()
    for number, task in enumerate(job.tasks):
        if task.image_pull_credential is None:
            continue
        handles.add(handle(task))
        where = below(pointer, "tasks", number, "imagePullCredential")
        if not is_of_registry(task.image):
            yield Fault(where, f"{task.image} is no image of a registry, and only these want credentials")
        elif len(handles) > MOST:
            yield Fault(where, f"a job has at most {MOST} different credentials")


def _of_nodes(job: Job, pointer: str) -> Iterator[Fault]:
    """What several nodes do together: the ranks of MPI tasks, in one container on each."""
    (least, nodes), where = node_range(job.resources), below(pointer, "resources", "nodes")
    if least > MOST_NODES:
        yield Fault(where, f"nodes is {least}, and a job has at most {MOST_NODES}")
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
