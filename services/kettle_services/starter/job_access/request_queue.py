"""
The queue of requests of people who look into the job. No request may harm the job, or keep its starter from its orders.
"""

import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import AccessReply, AccessRequest
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.processes.launch import Program
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.system.cgroup import Cgroup
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_wire.codes import RefusalCode

if TYPE_CHECKING:
    import select

    from kettle.execution.containers.job_container import JobContainer
    from kettle_services.starter.job_access.requests import AccessRequests


class AccessRequestQueue:
    """
    Accepts requests, and has one of them answered at a time: in between, orders are handled and limits checked.
    """

    def __init__(
        self,
        spec: JobSpec,
        job: JobAd,
        sandbox: Sandbox,
        cgroup: Cgroup | None,
        say: Callable[[AccessReply], object],
    ) -> None:
        self._spec = spec
        self._job = job
        self._sandbox = sandbox
        self._cgroup = cgroup
        self._say = say
        self._visits: AccessRequests | None = None
        self._asked: deque[AccessRequest] = deque()
        self.program: Program | None = None
        """What runs, where it is not what the job's ad says: in its place and environment others run beside it."""

    def enqueue(self, asked: AccessRequest) -> None:
        """A question has come; it is answered when it is its turn."""
        self._asked.append(asked)

    def answer(self, tree: ProcessTree | None, container: "JobContainer | None", *, still: bool) -> None:
        """
        Answer the next request, if there is one, about a job of these processes; `still`: they are suspended.
        """
        if not self._asked:
            return
        asked = self._asked.popleft()
        try:
            visits = self._visited()
            visits.meet(tree, container, self.program, still=still)
            answer = visits.hear(asked)
        except Exception as error:  # noqa: BLE001 - the job must not pay for those who look at it
            # Our modules may have been replaced by later ones since we began, or theirs ask what we do not know.
            _log(error)
            reason = f"the job's starter cannot answer: {type(error).__name__}: {error}"
            answer = AccessReply(asked.number, code=RefusalCode.REFUSED, reason=reason)
        if answer is not None:
            self._say(answer)

    @property
    def due(self) -> float:
        """When something has to be done that no descriptor tells, on `boottime`."""
        if self._asked:
            return 0.0
        return self._visits.due if self._visits is not None else float("inf")

    def register(self, poll: "select.poll") -> None:
        """Have a poll watch what the programs of visitors say."""
        if self._visits is not None:
            self._visits.register(poll)

    def go_on(self, ready: set[int]) -> None:
        """Do what is due, after a poll that has found these descriptors ready."""
        if self._visits is None:
            return
        try:
            self._visits.go_on(ready)
        except Exception as error:  # noqa: BLE001 - as above
            _log(error)
            self.close()

    def close(self) -> None:
        """End all programs of visitors."""
        visits, self._visits = self._visits, None
        if visits is not None:
            try:
                visits.close()
            except Exception as error:  # noqa: BLE001 - as above
                _log(error)

    def _visited(self) -> "AccessRequests":
        """The object that answers; most jobs have no such request, and each page costs memory."""
        if self._visits is None:
            from kettle_services.starter.job_access.requests import AccessRequests

            self._visits = AccessRequests(self._spec, self._job, self._sandbox, self._cgroup, self._say)
        return self._visits


def _log(error: Exception) -> None:
    sys.excepthook(type(error), error, error.__traceback__)
