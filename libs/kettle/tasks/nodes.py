"""
The tasks of a job of several nodes: node 0 carries them out one after another, and the others hold their places for MPI.

Pure.
"""

import msgspec

from kettle.tasks.reading import TasksError
from kettle_wire.tasks import MPI, TaskList


def on_node(listed: TaskList, number: int) -> TaskList:
    """
    What one of several nodes does: others than node 0 wait in the container in which the ranks of all MPI tasks run.

    Raises:
        TasksError: there is nothing for which they could wait, or no one container for it.
    """
    parallel = [task for task in listed.tasks if task.type in MPI]
    if not parallel:
        raise TasksError(
            "the job has several nodes, and no task of type openmpi, mpich or intelmpi that would use them"
        )
    if other := next((task for task in parallel if task.image != parallel[0].image), None):
        raise TasksError(
            f"the MPI tasks of a job of several nodes have one image, and these have {parallel[0].image or 'none'} and "
            f"{other.image or 'none'}"
        )
    if number == 0:
        return listed
    return msgspec.structs.replace(
        listed, tasks=(parallel[0],), outputs=(), retries=0, success_on_failure=False, wall_time=0.0
    )
