"""
What a job publishes, while it runs: a ticket of the gateway, asked for by way of the submit side and renewed, and one process that keeps
the tunnel.  A job that publishes nothing costs nothing.
"""

import sys
from typing import TYPE_CHECKING, Final

from kettle.execution.attempts.job_spec import JobSpec
from kettle.execution.attempts.messages import Reply, Unanswered
from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.system.cgroup import Cgroup
from kettle.execution.system.linux import boottime
from kettle_services.starter.submit_side_questions import SubmitSideQuestions
from kettle_wire.commands.questions import AskTicket, TicketGiven
from kettle_wire.session_attributes import SERVICES

if TYPE_CHECKING:
    import select

    from kettle.published.services import Service
    from kettle_services.starter.execution.process_tree import ProcessTree
    from kettle_services.starter.published.helper import TunnelHelper

_REPEAT_S: Final = 5.0
"""Between two questions for the same."""
_RENEWED: Final = 2 / 3
"""The part of a ticket's life after which the next one is asked for."""
_LATER_S: Final = 30.0
"""Until the next question after one that was refused."""
_AGAIN_S: Final = 2.0
"""Until a process that has died has a successor."""
_NEVER: Final = float("inf")


class Publisher:
    """The published services of one attempt."""

    def __init__(
        self, spec: JobSpec, job: JobAd, cgroup: Cgroup | None, questions: SubmitSideQuestions
    ) -> None:
        self._spec = spec
        self._job = job
        self._cgroup = cgroup
        self._questions = questions
        self._services: tuple[Service, ...] = ()
        self._number = 0
        """Of the question that waits for an answer; 0: none does."""
        self._running = False
        self._ask_at = self._start_at = _NEVER
        self._ticket: TicketGiven | None = None
        self._helper: TunnelHelper | None = None
        self._besides: set[int] = set()
        self._suspended = False
        self._changed = False
        self._said = ""
        self._held: frozenset[Service] = frozenset()
        """What the gateway has."""
        if job.given(SERVICES):
            self._begin()

    def _begin(self) -> None:
        from kettle.published.services import (
            ServiceError,
            parse_services,
        )  # here and below: few jobs have any

        if not self._spec.chirp.services:
            self._log("nothing is published: enable_published_services of this machine is false")
            return
        try:
            self._services = parse_services(self._job.text(SERVICES) or "")
        except ServiceError as error:
            self._log(f"nothing is published: {error}")
        else:
            self._ask_at = 0.0

    # -- what the job's programs ask ---------------------------------------------------------------------------------

    def publish(self, service: "Service") -> None:
        """One more service, or the same with another port; raises ServiceError: there are too many."""
        from kettle.published.services import with_service

        self._change(with_service(self._services, service))

    def unpublish(self, name: str) -> None:
        """One less; raises ServiceError: there is none of this name."""
        from kettle.published.services import without_service

        self._change(without_service(self._services, name))

    def address_of(self, service: "Service") -> str:
        """Where people find it; empty: the gateway does not have it yet."""
        if self._ticket is None or service not in self._held:
            return ""
        return f"{self._ticket.url}/jobs/{self._spec.job}/{service.name}/"

    def _change(self, services: "tuple[Service, ...]") -> None:
        if services == self._services:
            return
        self._services = services
        self._changed = True
        if self._ticket is None and self._ask_at == _NEVER:
            self._ask_at = 0.0

    # -- in the starter's poll ---------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When something has to be done that no descriptor tells, on `boottime`."""
        if not self._running:
            return _NEVER
        if self._changed:
            return 0.0
        return min(self._ask_at, self._start_at)

    def register(self, poll: "select.poll") -> None:
        """Have a poll watch what the process says."""
        if self._helper is not None:
            poll.register(self._helper.told, 1)  # POLLIN

    def go_on(self, ready: set[int], *, still: bool) -> None:
        """Do what is due; `still`: the job's processes are suspended."""
        if not self._running:
            return
        if self._helper is not None and self._helper.told in ready:
            self._hear_helper()
        if self.due > boottime() and still == self._suspended:
            return
        if still != self._suspended or self._changed:
            self._suspended, self._changed = still, False
            self._order()
        if boottime() >= self._ask_at:
            self._ask_at = boottime() + _REPEAT_S
            if self._number:
                self._questions.again(self._number, AskTicket())
            else:
                self._number = self._questions.ask(AskTicket())
        if boottime() >= self._start_at:
            self._start_at = _NEVER
            self._start()

    def hear(self, reply: Reply) -> None:
        """An answer of the submit side."""
        if not self._number or reply.number != self._number:
            return
        self._number = 0
        match reply.answer:
            case TicketGiven() as ticket:
                self._ticket = ticket
                self._ask_at = boottime() + max(1.0, ticket.left * _RENEWED)
                self._start_at = 0.0
            case Unanswered(reason=reason):
                self._log(f"the services are not published: {reason or 'the access point does not answer'}")
                self._ask_at = boottime() + _LATER_S
            case _:
                self._ask_at = boottime() + _LATER_S

    def close(self) -> None:
        """The job's processes are to end."""
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.end()
            self._besides.discard(helper.pid)
        self._held = frozenset()
        self._running = False

    def begin(self, tree: "ProcessTree") -> None:
        """The job's program runs (again), with these processes, of which ours is none."""
        tree.besides = self._besides
        self._running = True
        if self._ticket is not None:
            self._start_at = 0.0

    def _start(self) -> None:
        """Have a process that knows the newest orders."""
        from kettle_services.starter.published.helper import TunnelHelper

        if self._helper is None:
            try:
                self._helper = TunnelHelper(
                    self._spec.account,
                    self._cgroup.path if self._cgroup is not None else "",
                    own_network=self._has_own_network(),
                )
            except OSError as error:
                self._log(f"there can be no process for the services: {error}")
                self._start_at = boottime() + _LATER_S
                return
            self._besides.add(self._helper.pid)
        self._order()

    def _has_own_network(self) -> bool:
        """Whether the job's container has a network of its own, if it is in one."""
        policy = self._spec.containers
        asked = self._job.text("DockerNetworkType") or ""
        return asked.lower() == "none" or (policy is not None and policy.network == "none")

    def _order(self) -> None:
        if self._helper is None or self._ticket is None:
            return
        from kettle.published.frames import Announcement
        from kettle.published.job_side import Orders

        ticket = self._ticket
        orders = Orders(
            url=ticket.url,
            ca=ticket.ca,
            ticket=ticket.ticket,
            announcement=Announcement(services=self._services, suspended=self._suspended),
        )
        if not self._helper.order(orders):
            self._died()

    def _hear_helper(self) -> None:
        import msgspec

        from kettle.published.job_side import Said
        from kettle.published.services import services_text

        assert self._helper is not None
        lines = self._helper.hear()
        if lines is None:
            self._died()
            return
        for line in lines:
            said = msgspec.json.decode(line, type=Said)
            self._held = frozenset(said.services)
            if said.connected:
                self._log(f"published: {services_text(said.services) or 'nothing'}")
            else:
                self._log(f"the services are not reached: {said.text}")
            if said.over:
                self._ask_at = min(self._ask_at, boottime() + _LATER_S)

    def _died(self) -> None:
        """The process has ended, or is of no use."""
        self.close()
        self._running = True
        self._start_at = boottime() + _AGAIN_S

    def _log(self, text: str) -> None:
        if text != self._said:
            self._said = text
            print(f"job {self._spec.job}: {text}", file=sys.stderr, flush=True)  # noqa: T201 - the starter's log
