"""Whether a job's processes are suspended, by the policy of the machine or by the owner of the job."""

import time
from collections.abc import Callable

from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.worker_reports import Body, Continued, Report, Suspended


class JobSuspension:
    """The suspension of one job, from before its start.  `report` makes a report of its arguments."""

    def __init__(self, report: Callable[[Body], Report]) -> None:
        self._report = report
        self._begun = False
        self._still = False
        self._at_once = False
        self._told = False
        """The suspension was reported, and takes effect when the job is started again."""
        """
        The preparation of the job would be frozen with its group: the group is frozen when the job runs.
        """
        self.said: Report | None = None
        """What was last said: to be said again and again, because a report that is not final may be lost."""

    @property
    def wanted(self) -> bool:
        """Whether it is suspended, or will be as soon as it runs."""
        return self._still or self._at_once

    def begin(self, tree: ProcessTree) -> None:
        """The job runs now."""
        self._begun = True
        if self._at_once:
            self.suspend(tree)

    def pause(self, tree: ProcessTree) -> None:
        """The program has ended and will be started again: in a group that is frozen nobody can start it."""
        self._begun = False
        if self._still:
            self.lift(tree)
            self._at_once = self._told = True

    def suspend(self, tree: ProcessTree) -> None:
        """Suspend everything; a repeat changes nothing."""
        self._at_once = not self._begun
        if self._begun and not self._still:
            self._still = True
            processes = tree.suspend()
            self.said = self._report(Suspended(at=time.time(), processes=processes))

    def resume(self, tree: ProcessTree) -> None:
        """Have everything go on."""
        self._at_once = False
        if self._still or self._told:
            self._told, at = False, time.time()
            self.lift(tree)  # it may run from then on, and we may be slow to say so
            self.said = self._report(Continued(at=at))

    def lift(self, tree: ProcessTree) -> None:
        """End the suspension without a report, for a job that has to receive its end."""
        if self._still:
            self._still = False
            tree.resume()
