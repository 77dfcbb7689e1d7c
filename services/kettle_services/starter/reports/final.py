"""
The end of a starter: its final report is written to disk before it is sent, no matter how long the disk is full; or
there is no receiver left.
"""

import os
import select
import sys
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Final, NoReturn

from kettle.execution.attempts.job_spec import StoredReport
from kettle.execution.attempts.messages import Hello
from kettle.execution.attempts.stored_reports import Draft
from kettle.execution.processes.kept_namespaces import NamespaceKeeper
from kettle.execution.sandbox.directory import Sandbox, release_execute
from kettle.execution.sandbox.spare import SpareSandbox
from kettle.execution.system.cgroup import Cgroup
from kettle.retry.backoff import Backoff
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.reports.startd_connection import StartdConnection

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer

EXIT_ORPHANED: Final = 70
_BACKOFF: Final = Backoff(first=0.1, longest=2.0, spread=0.0)


class StarterProcess:
    """
    What all jobs of one starter's process have in common: its line to the startd, the lifeline of its jobs, its draft, and
    what waits for the next one.
    """

    def __init__(self, line: StartdConnection, lifeline_fd: int) -> None:
        self.line = line
        self.lifeline_fd = lifeline_fd
        self.namespaces = NamespaceKeeper()
        self.spare = SpareSandbox()
        self._draft = Draft()

    def store_final_report(
        self, stored: StoredReport, state: str, hello: Hello, orphaned: Callable[[], NoReturn]
    ) -> None:
        """Nothing is lost on a full disk: the result waits here until there is room for it below `state`."""
        for failures in count():
            try:
                self._draft.store(state, stored)
            except OSError as error:
                if not failures:
                    sys.stderr.write(f"the final report of {stored.id.name} waits: {error.strerror}\n")
            else:
                return
            poll = select.poll()
            if self.lifeline_fd >= 0:
                poll.register(self.lifeline_fd, select.POLLIN)
            self.line.register(poll)
            ready = {fd for fd, _ in poll.poll(_BACKOFF.length(failures) * 1000)}
            if self.lifeline_fd in ready:
                orphaned()
            if self.line.fileno() in ready:
                tuple(self.line.receive())  # whatever is ordered, the job is over
            self.line.reconnect(hello)  # the next startd must not take us for dead

    def close(self) -> None:
        """No more jobs."""
        self.namespaces.drop()
        self.spare.drop()
        self._draft.close()
        self.line.close()


def end_with_lifeline(
    tree: ProcessTree, cgroup: Cgroup | None, container: "JobContainer | None", sandbox: Sandbox, execute: str
) -> NoReturn:
    """The program that started the master has ended, and wants nothing to outlive it."""
    tree.kill_all()
    if container is not None:
        container.finish()
    if cgroup is not None:
        cgroup.remove()
    sandbox.remove()
    release_execute(execute)
    os._exit(EXIT_ORPHANED)
