"""One attempt on this machine as its startd sees it, and who hears what becomes of it."""

import asyncio
from typing import Protocol

from kettle.execution.attempts.job_spec import AttemptId, JobSpec, StoredReport
from kettle.execution.attempts.messages import AccessReply, Question
from kettle_services.startd.domain.state.claim import StopOrder
from kettle_services.startd.starters.connection import StarterConnection
from kettle_wire.worker_reports import Report


class AttemptListener(Protocol):
    """Who hears what becomes of attempts."""

    def starter_connected(self, attempt: AttemptId, pid: int, started: int) -> None:
        """A starter has said hello."""
        ...

    def record_report(self, report: Report) -> None:
        """The job runs, or uses so much."""
        ...

    def record_exit(self, stored: StoredReport) -> None:
        """The final report is on disk."""
        ...

    def forward_question(self, attempt: AttemptId, question: Question) -> None:
        """The starter, or a program of its job, asks the submit side."""
        ...

    def starter_lost(self, attempt: AttemptId, *, ran: bool) -> None:
        """The starter is gone without a final report; `ran`: it had begun."""
        ...


class SupervisedAttempt:
    """One attempt."""

    def __init__(self, attempt: AttemptId) -> None:
        self.id = attempt
        self.spec: JobSpec | None = None
        self.channel: StarterConnection | None = None
        self.met = False
        self.births = 0
        self.pid = 0
        self.started = 0
        self.watch = -1
        self.stop: StopOrder | None = None
        self.suspended: bool | None = None
        """Whether the job is to be suspended; None: nobody has asked for either."""
        self.deadline = 0.0
        """Until when its lease was renewed, seconds since boot; 0: it was not, since its order was made."""
        self.enforcement: asyncio.TimerHandle | None = None
        self.begun: Report | None = None
        """The report that its program runs, once there is one."""
        self.settled = asyncio.Event()
        self.rests = False
        """Whether its starter waits for another job."""
        self.visits = False
        """Whether its starter can be asked for those who look into the job."""
        self.asked: dict[int, asyncio.Future[AccessReply | None]] = {}
        """What its starter has been asked and has not answered."""
