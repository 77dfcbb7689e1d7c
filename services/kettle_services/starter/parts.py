"""
What works for a job beside its program, in one poll with it; most jobs want little of it, and that costs nothing.
"""

import select
from typing import TYPE_CHECKING

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Reply
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle.execution.system.cgroup import Cgroup
from kettle_services.starter.chirp.server import Proxy
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.file_transfer.output_streaming import Streams
from kettle_services.starter.file_transfer.progress import Transfers
from kettle_services.starter.hooks import Updates
from kettle_services.starter.job_access.request_queue import AccessRequestQueue
from kettle_services.starter.job_tokens import TokenFiles
from kettle_services.starter.published.publisher import Publisher
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.submit_side_questions import SubmitSideQuestions

if TYPE_CHECKING:
    from kettle.execution.containers.job_container import JobContainer


class StarterParts:
    """The parts of one attempt's starter that have nothing to decide about the attempt."""

    def __init__(
        self, spec: JobSpec, job: JobAd, sandbox: Sandbox, cgroup: Cgroup | None, line: StartdConnection
    ) -> None:
        questions = SubmitSideQuestions(spec.shadow, line.send)
        self.access = AccessRequestQueue(spec, job, sandbox, cgroup, line.send)
        self.tokens = TokenFiles(job, sandbox, questions)
        self.publisher = Publisher(spec, job, cgroup, questions)
        self.transfers = Transfers(spec, job, questions)
        self.updates = Updates(spec, job, cgroup)
        self.proxy = Proxy(spec, job, questions.ask, self.publisher)
        self.streams = Streams(job, sandbox, questions.ask)

    @property
    def due(self) -> float:
        """When something has to be done that no descriptor tells, on `boottime`."""
        return min(self.access.due, self.proxy.due, self.publisher.due, self.streams.due, self.tokens.due)

    def register(self, poll: "select.poll") -> None:
        """Have a poll watch what they wait for."""
        self.access.register(poll)
        self.proxy.register(poll)
        self.publisher.register(poll)

    def serve_connections(self, ready: set[int]) -> None:
        """
        Go on with people's programs and with the job's own requests, after a poll that has found these descriptors ready.
        """
        self.access.go_on(ready)
        self.proxy.go_on(ready)

    def go_on(self) -> None:
        """Do what is due at its time."""
        self.streams.go_on()
        self.tokens.go_on()

    def hear(self, reply: Reply) -> None:
        """An answer of the submit side, for one of them."""
        for asker in (self.tokens, self.publisher, self.transfers, self.proxy, self.streams):
            asker.hear(reply)

    def answer(
        self,
        ready: set[int],
        tree: ProcessTree | None,
        container: "JobContainer | None",
        *,
        still: bool,
    ) -> None:
        """Go on with what is published, and answer one request of people; `still`: the job is suspended."""
        self.publisher.go_on(ready, still=still)
        self.access.answer(tree, container, still=still)

    def end_processes(self, tree: ProcessTree) -> None:
        """Nothing of the job runs any more, and nothing beside it."""
        self.publisher.close()
        tree.kill_all()
        self.updates.close()
        self.access.close()
