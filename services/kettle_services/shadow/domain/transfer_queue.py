"""
Which jobs may move files now, when not all may at once: users in turn, the jobs of one user in the order in which they
came.
"""

from collections import OrderedDict

from kettle_wire.jobs import JobId


class Turns:
    """At most so many jobs at once have their turn."""

    def __init__(self, most: int) -> None:
        """`most` 0: there is no limit."""
        self._most = most
        self._active: set[JobId] = set()
        self._waiting: OrderedDict[str, OrderedDict[JobId, None]] = OrderedDict()

    def __len__(self) -> int:
        return sum(len(jobs) for jobs in self._waiting.values())

    def ask(self, job: JobId, user: str) -> bool:
        """
        Whether it is this job's turn; if not, it has a place in its user's queue. Asking again changes nothing.
        """
        if job not in self._active:
            self._waiting.setdefault(user, OrderedDict()).setdefault(job)
            self._advance()
        return job in self._active

    def done(self, job: JobId) -> list[JobId]:
        """A job moves nothing more, or does not want to any more; whose turn it is now that was waiting."""
        self._active.discard(job)
        for user in list(self._waiting):
            self._leave(user, job)
        return self._advance()

    def _advance(self) -> list[JobId]:
        given: list[JobId] = []
        while self._waiting and (not self._most or len(self._active) < self._most):
            user = next(iter(self._waiting))
            job = next(iter(self._waiting[user]))
            self._leave(user, job)
            if user in self._waiting:
                self._waiting.move_to_end(user)  # the next turn is somebody else's
            self._active.add(job)
            given.append(job)
        return given

    def _leave(self, user: str, job: JobId) -> None:
        self._waiting[user].pop(job, None)
        if not self._waiting[user]:
            del self._waiting[user]
