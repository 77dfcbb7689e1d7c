"""What happens to one job, on the stream `job/<cluster>.<proc>`."""

from typing import Literal

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.attempts import Ending, ExitRecord, Transfer, Usage
from kettle_wire.events.base import Event, Superseded
from kettle_wire.tasks import Step


class NodeSlot(msgspec.Struct, frozen=True, kw_only=True):
    """The claim that one node of a job was given."""

    claim: str
    slot: str
    startd: str


class JobAssigned(Event, frozen=True, tag="job.assigned/1"):
    """The job was given a claim; `attempt` counts the runs of the job from 1."""

    attempt: int
    claim: str
    slot: str
    startd: str
    notes: Ad = {}
    """What its ad says of the machines that it has been given (JobMachineAttrs, LastMatchListLength)."""
    nodes: list[NodeSlot] = []
    """Of a job of several nodes, those from number 1 on: it was given all at once, and the claim here is that of node 0."""


class JobStarted(Event, frozen=True, tag="job.started/1"):
    """The executable of this attempt really runs."""

    attempt: int
    pid: int = 0
    at: float = 0.0
    """On the worker's clock, seconds since the epoch."""
    input: Transfer | None = None
    """None: all that it takes along came with the order to start."""


class JobSuspended(Event, frozen=True, tag="job.suspended/1"):
    """
    All processes of this attempt are suspended, because the machine's policy or its owner wants it; it keeps its slot.
    """

    attempt: int
    processes: int = 0
    """How many there were."""
    at: float = 0.0
    """On the worker's clock, seconds since the epoch."""


class JobContinued(Event, frozen=True, tag="job.continued/1"):
    """The processes of this attempt, which was suspended, go on."""

    attempt: int
    at: float = 0.0
    """On the worker's clock, seconds since the epoch."""


class JobDisconnected(Event, frozen=True, tag="job.disconnected/1"):
    """
    The machine of this attempt does not answer; until its lease is over the attempt may go on there, unseen.
    """

    attempt: int
    reason: str = ""


class JobReconnected(Event, frozen=True, tag="job.reconnected/1"):
    """The machine answers again, and the attempt has gone on."""

    attempt: int


class JobCheckpointed(Event, frozen=True, tag="job.checkpointed/1"):
    """
    The program ended with its checkpoint's exit code and what it left is saved: its next attempt goes on from there.
    """

    attempt: int
    number: int
    """Counts the checkpoints of this attempt from 1."""
    at: float = 0.0
    """When the program ended, on the worker's clock, seconds since the epoch."""
    usage: Usage = Usage()
    """Of this attempt so far; `sent` are the bytes of this checkpoint."""


class JobVacated(Event, frozen=True, tag="job.vacated/2"):
    """
    The attempt ended without finishing the job.

    If its ending holds the job, `job.held` follows, unless the next run asks for more of what this one ran out of, or the
    job had been held or removed meanwhile.
    """

    attempt: int
    ending: Ending
    exit: ExitRecord | None = None
    """
    How its program had run to its end, if a policy of the job did not let it leave the queue; None: it had not.
    """
    usage: Usage = Usage()
    cool_down: float = 0.0
    """Seconds that the job is not to be started again, because its start failed."""


class JobVacatedV1(Superseded, frozen=True, tag="job.vacated/1"):
    """
    The attempt ended without finishing the job; codes are HTCondor's VacateReasonCode, or HoldReasonCode (below 1000)
    where what ended it holds the job.

    If its program had run to its end, and a policy of the job did not let it leave the queue, one of `exit_code` and
    `exit_signal` is set.
    """

    attempt: int
    code: int
    reason: str
    usage: Usage = Usage()
    exit_code: int | None = None
    exit_signal: int | None = None
    at: float = 0.0
    """When the process exited by itself, on the worker's clock, seconds since the epoch; 0 if it did not."""
    subcode: int = 0
    cool_down: float = 0.0
    """Seconds that the job is not to be started again, because its start failed."""
    output: Transfer | None = None
    """Of results of a program that had run to its end; None: they came with the report of its end."""

    def upcast(self) -> JobVacated:
        """With its codes and its exit as values of their own."""
        ran = self.exit_code is not None or self.exit_signal is not None
        return JobVacated(
            attempt=self.attempt,
            ending=Ending(code=self.code, subcode=self.subcode, reason=self.reason),
            exit=_exit(self.exit_code, self.exit_signal, at=self.at, output=self.output) if ran else None,
            usage=self.usage,
            cool_down=self.cool_down,
        )


class JobCompleted(Event, frozen=True, tag="job.completed/2"):
    """
    The job ran to its end.

    `attempt` 0: it was no job for any machine (IsNoopJob).
    """

    attempt: int
    exit: ExitRecord
    usage: Usage = Usage()


class JobCompletedV1(Superseded, frozen=True, tag="job.completed/1"):
    """
    The job ran to its end: exactly one of `exit_code` and `exit_signal` is set.

    `attempt` 0: it was no job for any machine (IsNoopJob).
    """

    attempt: int
    exit_code: int | None = None
    exit_signal: int | None = None
    at: float = 0.0
    """When the process exited, on the worker's clock, seconds since the epoch."""
    usage: Usage = Usage()
    output: Transfer | None = None
    """None: all that it left came with the report of its end."""
    dumped: bool = False
    """The signal that ended it had its memory written into a file."""
    core: str = ""
    """Path of that file on the submit side; empty: nobody has it."""

    def upcast(self) -> JobCompleted:
        """With its exit as a value of its own."""
        ended = _exit(
            self.exit_code,
            self.exit_signal,
            at=self.at,
            dumped=self.dumped,
            core=self.core,
            output=self.output,
        )
        return JobCompleted(attempt=self.attempt, exit=ended, usage=self.usage)


def _exit(
    code: int | None,
    signal: int | None,
    *,
    at: float,
    dumped: bool = False,
    core: str = "",
    output: Transfer | None = None,
) -> ExitRecord:
    """Of an old event: a signal counts more than a code, and neither was always taken for the exit code 0."""
    if signal is None and code is None:
        code = 0
    if signal is not None:
        code = None
    return ExitRecord(code=code, signal=signal, at=at, dumped=dumped, core=core, output=output)


class JobHeld(Event, frozen=True, tag="job.held/1"):
    """The job waits for somebody; codes are HTCondor's HoldReasonCode."""

    code: int
    reason: str
    subcode: int = 0
    by: str = ""


class JobReleased(Event, frozen=True, tag="job.released/1"):
    """A held job may run again."""

    reason: str = ""
    by: str = ""
    spooled: int | None = None
    """Of one that was held for its input files: the bytes of its share of them in the spool; None: nobody has counted them."""


class JobRemoved(Event, frozen=True, tag="job.removed/1"):
    """The job will not run again; an attempt that still lives is being ended."""

    reason: str = ""
    by: str = ""


class JobKept(Event, frozen=True, tag="job.kept/1"):
    """What ends the job, right after this, does not take it out of the queue: its LeaveJobInQueue is true."""


class JobLeft(Event, frozen=True, tag="job.left/1"):
    """
    Nothing keeps the job in the queue (any more): it leaves it now, or as soon as its attempt has ended.
    """

    reason: str = ""
    by: str = ""


class JobDeferred(Event, frozen=True, tag="job.deferred/1"):
    """The job, which runs by the calendar, starts at a time and not before."""

    until: int
    """Seconds since the epoch."""


class JobTold(Event, frozen=True, tag="job.told/1"):
    """The program of this attempt said something of itself: to be in the job's ad, and to be in its log."""

    attempt: int
    id: str
    """Of the message: what is said twice is recorded once."""
    attributes: Ad = {}
    notes: list[str] = []
    """Lines for the job event log, in order."""


class JobEdited(Event, frozen=True, tag="job.edited/1"):
    """Somebody has given attributes of the job other values."""

    attributes: Ad
    by: str = ""


class JobStepped(Event, frozen=True, tag="job.stepped/1"):
    """Steps of this attempt of a job of several tasks, in their order."""

    attempt: int
    first: int
    """The number of the first of them; the steps of an attempt are counted from 1."""
    steps: list[Step]


class JobNodeStarted(Event, frozen=True, tag="job.node_started/1"):
    """The program of one node of this attempt of a job of several nodes runs."""

    attempt: int
    node: int
    claim: str
    slot: str
    at: float = 0.0
    """On the worker's clock, seconds since the epoch."""


class JobNodeEnded(Event, frozen=True, tag="job.node_ended/1"):
    """One node of this attempt has ended; what becomes of the attempt, its own end says."""

    attempt: int
    node: int
    exit: ExitRecord | None = None
    """How its program ran to its end; None: it did not."""
    ending: Ending | None = None
    """What ended it otherwise."""
    usage: Usage = Usage()


class JobRouted(Event, frozen=True, tag="job.routed/1"):
    """
    A compute entrypoint has given the job a route: until it is unrouted, its ad is its own with these changes.
    """

    route: str
    """Its name."""
    number: int
    """Counts what the entrypoint has said of the job from 1."""
    version: str = ""
    """Of the routes."""
    attributes: Ad = {}
    """What the ad says from now on."""
    removed: list[str] = []
    """What it says no longer."""
    before: Ad = {}
    """What it said before of what is set or removed."""
    added: list[str] = []
    """What is set that it did not have."""


class JobUnrouted(Event, frozen=True, tag="job.unrouted/1"):
    """The job has no route: none takes it, or it has lost the one that it had. It waits until it gets one."""

    number: int
    """As in `job.routed`."""
    reason: str
    by: str = ""
    """The administrator who wanted it; empty: it follows from the routes."""
    attributes: Ad = {}
    """Of the changes of a route that it had, what the ad said before."""
    removed: list[str] = []
    """What its ad did not have before."""


class ServiceUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one person did with one published service of a job, since the report before."""

    person: str
    service: str
    because: str = ""
    """By what he may: `owner`, `shared`, `group` or `administrator`; empty: he may not."""
    connections: int = 0
    """Begun, or requests of HTTP."""
    sent: int = 0
    """Bytes to the job."""
    received: int = 0
    """Bytes from the job."""
    refused: int = 0
    """So often he was not let in, or not connected."""
    why: str = ""
    """Why not, the last time, where the connection itself could not carry a sentence."""


class JobServed(Event, frozen=True, tag="job.served/1"):
    """
    What happened at a gateway to the services that this attempt publishes, since the report before: the attempt has connected, or its
    connection has ended, and who has used what.
    """

    attempt: int
    tunnel: Literal["", "up", "down"] = ""
    """Empty: as it was."""
    services: list[str] = []
    """Published when it connected, as `name:port/kind`."""
    reason: str = ""
    """Why its connection has ended."""
    uses: list[ServiceUse] = []


OrderKind = Literal["vacate", "vacate_fast", "suspend", "continue"]


class JobOrdered(Event, frozen=True, tag="job.ordered/1"):
    """
    Somebody wants this attempt to leave its machine (`vacate_fast`: without time to end), to be suspended, or to continue.

    Other events say what came of it.
    """

    attempt: int
    order: OrderKind
    reason: str = ""
    by: str = ""


JobEvent = (
    JobAssigned
    | JobStarted
    | JobSuspended
    | JobContinued
    | JobDisconnected
    | JobReconnected
    | JobCheckpointed
    | JobVacated
    | JobCompleted
    | JobHeld
    | JobReleased
    | JobRemoved
    | JobKept
    | JobLeft
    | JobDeferred
    | JobTold
    | JobEdited
    | JobOrdered
    | JobServed
    | JobStepped
    | JobNodeStarted
    | JobNodeEnded
    | JobRouted
    | JobUnrouted
)
