"""Who may look at a task queue, and who may give it tasks and end it."""

from collections.abc import Callable

from kettle.bus.ports import RefusedError
from kettle_services.sessions.domain.task_queues.queue import TaskQueue
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_wire.codes import RefusalCode
from kettle_wire.identity import Identity


class QueueAccess:
    """Finds task queues for people: their own, and everybody's for administrators."""

    def __init__(self, engine: QueueEngine, administers: Callable[[Identity], bool]) -> None:
        """`administers`: whether a person may see and end the queues of all."""
        self._engine = engine
        self._administers = administers

    def require_everybody(self, caller: Identity) -> None:
        """Raise RefusedError: this person may not see the queues of all."""
        if not self._administers(caller):
            raise RefusedError(
                RefusalCode.DENIED,
                f"task queues of others are for administrators to list, and {caller.name} is none",
            )

    def shown(self, which: str, caller: Identity) -> TaskQueue:
        """
        A queue that somebody may look at, by its id; an own one by its name, too: of several the one that was made last.

        Raises RefusedError: there is none, or none that this caller may know of.
        """
        found = self._engine.queues.get(which)
        if found is not None and (caller.is_person(found.owner) or self._administers(caller)):
            return found
        own = [
            each
            for each in self._engine.queues.values()
            if each.name == which and caller.is_person(each.owner)
        ]
        if own:
            return min(own, key=lambda each: (bool(each.ended), -each.created))
        raise RefusedError(
            RefusalCode.NOT_FOUND,
            f"there is no task queue {which} that you may see; kettle tasks list has yours",
        )

    def owned(self, which: str, caller: Identity) -> TaskQueue:
        """An own queue, to which tasks are given: they run as its owner. Raises RefusedError."""
        queue = self.shown(which, caller)
        if not caller.is_person(queue.owner):
            raise RefusedError(
                RefusalCode.DENIED, f"task queue {queue.name} is {queue.owner}'s: nobody else gives it tasks"
            )
        return queue
