"""
What a document may say and no machine does yet: it is refused where it stands, instead of being passed over.
"""

from collections.abc import Iterator

from kettle.prominence.faults import Fault, below
from kettle.prominence.job_rules import MPI
from kettle_wire.prominence.job import Job


def not_carried_out(job: Job, pointer: str = "") -> Iterator[Fault]:
    """A fault for each part of a sound job that would have no effect."""
    resources, policies = job.resources, job.policies
    if resources.nodes > 1:
        yield Fault(
            below(pointer, "resources", "nodes"), "jobs of several nodes are not run yet: nodes must be 1"
        )
    if resources.total_cpus_range:
        where = below(pointer, "resources", "totalCpusRange")
        yield Fault(where, "jobs of several nodes are not run yet: write cpusRange")
    if job.storage:
        yield Fault(below(pointer, "storage"), "no machine mounts storage yet: name files as artifacts")
    if policies.run_serial_tasks_on_all_nodes:
        where = below(pointer, "policies", "runSerialTasksOnAllNodes")
        yield Fault(where, "jobs of several nodes are not run yet: leave runSerialTasksOnAllNodes out")
    for number, task in enumerate(job.tasks):
        where = below(pointer, "tasks", number)
        if task.type in MPI:
            sentence = (
                f"tasks of type {task.type} are not run yet: call mpirun in a basic task, if one node will do"
            )
            yield Fault(below(where, "type"), sentence)
        if task.app:
            yield Fault(below(where, "app"), "applications of SCIF images are not run yet: write cmd")
        if task.image_pull_credential:
            sentence = "images are not pulled with credentials yet: use an image that is public, or upload it"
            yield Fault(below(where, "imagePullCredential"), sentence)
