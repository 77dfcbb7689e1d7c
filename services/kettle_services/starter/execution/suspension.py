"""
Whether a job's processes stand still, because the policy of the machine or the owner of the job wants it.
"""

import time
from collections.abc import Callable

from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.worker_reports import Body, Continued, Report, Suspended


class JobSuspension:
    """Of one job, from before its start.  `report` makes a report of what it is told."""

    def __init__(self, report: Callable[[Body], Report]) -> None:
        self._report = report
        self._begun = False
        self._still = False
        self._at_once = False
        self._told = False
        """It was said that it stands still, and it will when it is started again."""
        """
        What prepares the job would stand still with a group that is frozen already: it does when the job runs.
        """
        self.said: Report | None = None
        """What was last said: to be said again and again, because a report that is not final may be lost."""

    @property
    def wanted(self) -> bool:
        """Whether it stands still, or will as soon as it runs."""
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
        """Have everything stand still; said twice is said once."""
        self._at_once = not self._begun
        if self._begun and not self._still:
            self._still = True
            processes = tree.suspend()
            self.said = self._report(Suspended(at=time.time(), processes=processes))

    def resume(self, tree: ProcessTree) -> None:
        """Have everything go on."""
        self._at_once = False
        if self._still or self._told:
            self._told = False
            self.lift(tree)
            self.said = self._report(Continued(at=time.time()))

    def lift(self, tree: ProcessTree) -> None:
        """The same without a word, for a job that is to hear of its end."""
        if self._still:
            self._still = False
            tree.resume()
