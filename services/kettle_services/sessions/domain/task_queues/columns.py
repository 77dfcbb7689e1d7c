"""Results of tasks as columns: some of them, or that of one task."""

from collections.abc import Collection

from kettle_services.sessions.domain.task_queues.pieces import numbers, ranges_of
from kettle_wire.task_queues import TaskColumns, TaskExit


def some(results: TaskColumns, places: Collection[int]) -> TaskColumns:
    """The results of the tasks at these places, which count from 0."""
    order = sorted(places)
    new = {place: at for at, place in enumerate(order)}
    known = list(numbers(results.tasks))
    return TaskColumns(
        tasks=ranges_of(known[each] for each in order),
        wall_us=[results.wall_us[each] for each in order] if results.wall_us else [],
        cpu_us=[results.cpu_us[each] for each in order] if results.cpu_us else [],
        exits=[
            TaskExit(new[each.place], each.exit, each.reason) for each in results.exits if each.place in new
        ],
        outputs=[results.outputs[each] for each in order] if results.outputs else [],
        cut=[new[each] for each in results.cut if each in new],
    )
