"""
The namespaces of the last job of this process, kept for the next one.

What no two jobs may have in common is kept apart so: of another person's jobs the next one gets nothing, because who has
an open directory of these namespaces, or a watch on one, from a job that has ended would see into the next; of the same
person's it gets them if they are empty.
"""

import os
from typing import TYPE_CHECKING

from kettle.execution.processes.namespaces import Namespaces
from kettle.execution.sandbox import private_directories

if TYPE_CHECKING:
    from kettle.execution.processes.isolation import Enclosure


class NamespaceKeeper:
    """Namespaces for one job after the other of a process that starts them."""

    def __init__(self) -> None:
        self._kept: Namespaces | None = None
        self._of: Enclosure | None = None
        """Whose they were made for, and who uses them, or has used them last."""
        self._in_use = False

    def enter(self, enclosure: "Enclosure") -> None:
        """
        Have the calling thread in the namespaces of an enclosed job, which may be started again; it is at the root then.

        The thread must end after that. Raises OSError.
        """
        if self._kept is not None and self._give(self._kept, enclosure):
            self._kept.enter()
        else:
            self.drop()
            self._kept = Namespaces(
                enclosure.sandbox,
                enclosure.isolation.directories,
                shared_memory=enclosure.isolation.shared_memory,
                memory=enclosure.memory,
            )
            os.chdir("/")
        self._of, self._in_use = enclosure, True

    def _give(self, kept: Namespaces, enclosure: "Enclosure") -> bool:
        """Put the directories of kept namespaces into a job's sandbox, if it may have them."""
        if self._in_use:
            return enclosure == self._of
        if self._of is None or not enclosure.may_follow(self._of) or not kept.is_current():
            return False
        try:
            if kept.place is not None:
                private_directories.give(enclosure.sandbox)
        except FileNotFoundError:  # a startd that began meanwhile has removed what no job had
            return False
        return True

    def end_use(self) -> None:
        """
        The job that had them has ended with all its processes: keep them if it has left nothing there.

        What it has left goes with its sandbox.
        """
        kept, of = self._kept, self._of
        if kept is None or of is None or not self._in_use:
            return
        self._in_use = False
        try:
            # A program that gets rights may have mounted something, or changed what is ours.
            fit = of.isolation.no_new_privileges and kept.is_empty()
            if fit and kept.place is not None:
                fit = private_directories.keep(of.sandbox, kept.place)
        except OSError:
            fit = False
        if not fit:
            self.drop()

    def drop(self) -> None:
        """Keep nothing."""
        if self._kept is not None and self._of is not None:
            self._kept.close()
            private_directories.release(self._of.execute)
        self._kept = self._of = None
        self._in_use = False
