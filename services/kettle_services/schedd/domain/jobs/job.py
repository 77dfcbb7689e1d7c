"""
One job: its states and what may happen in each.

    idle --Assign--> running --End---> completed
     ^ |               |  ^
     | +--Hold--> held |  +-- the attempt ends otherwise: back to idle, or held
     |             |   |
     +---Release---+   +--Remove (from any state)--> removed

An attempt outlives a hold, a release or a removal until its worker says that it ended: `claim` is set as long as the
attempt may live, and a job with a claim is never assigned again. That is what keeps two attempts from overlapping.
"""

from typing import Literal, assert_never, cast, get_args

import msgspec

from kettle_services.schedd.domain.jobs.cool_down import MAY_REPEAT, cool_down
from kettle_services.schedd.domain.jobs.gang import Gang, NodeBegin, NodeEnd, evolved, gang_of, heard
from kettle_services.schedd.domain.jobs.orders import NONE, Defer, Order, Orders, ordered
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending, Transfer, Usage
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.events import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobHeld,
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobUnrouted,
    JobVacated,
    NodeSlot,
)
from kettle_wire.tasks import MOST_STEPS, Step

Status = Literal["idle", "running", "held", "removed", "completed"]
_Lasting = JobVacated | JobCompleted | JobHeld | JobReleased | JobRemoved | JobKept | JobLeft
_LASTING = frozenset(get_args(_Lasting))


class Job(msgspec.Struct, frozen=True, gc=False):
    """The state of one job; the default is a job to which nothing has happened yet."""

    status: Status = "idle"
    attempt: int = 0
    """Number of the newest attempt, 0 before the first."""
    claim: str = ""
    """The claim on which an attempt may still live; empty if none does."""
    began: bool = False
    """The executable of the newest attempt was seen running."""
    failures: int = 0
    """How many attempts in a row failed for reasons that may repeat at once."""
    hold_code: int = 0
    """HoldReasonCode while it is held."""
    suspended: bool = False
    """Its newest attempt is suspended; the job counts as running."""
    disconnected: bool = False
    """The machine of its newest attempt does not answer."""
    checkpoint: int = 0
    """
    Number of the newest checkpoint of the newest attempt, 0 before the first; of a job of several tasks, which makes none, of the
    newest step.
    """
    cooling: float = 0.0
    """Seconds that the job waits before its next attempt, because the last one failed around its start."""
    told: str = ""
    """Id of the last update of the newest attempt."""
    orders: Orders = NONE
    """What its owner has ordered of its newest attempt."""
    kept: bool = False
    """It is in the queue although it has ended, or will be."""
    left: bool = False
    """Nothing keeps it there any more, whatever it says."""
    gang: Gang | None = None
    """The nodes of the attempt that may still live, if it has several."""

    @property
    def claims(self) -> tuple[str, ...]:
        """All claims on which the attempt may still live."""
        if self.gang is not None:
            return self.gang.claims
        return (self.claim,) if self.claim else ()

    @property
    def runnable(self) -> bool:
        """Whether it may be given a claim now."""
        return self.status == "idle" and not self.claim

    @property
    def shown(self) -> str:
        """Its status as a word for people."""
        if self.status != "running":
            return self.status
        return "vacating" if self.orders.vacating else "suspended" if self.suspended else "running"

    @property
    def over(self) -> bool:
        """Whether it leaves the queue: nothing can happen to it any more."""
        return self.ended and not self.kept

    @property
    def ended(self) -> bool:
        """Whether it has ended and no attempt of it lives: it leaves the queue unless something keeps it."""
        return self.status in ("completed", "removed") and not self.claim


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """A command that the state of the job does not allow; nothing is recorded."""


class Assign(msgspec.Struct, frozen=True):
    """Run the job on a claim."""

    claim: str
    slot: str
    startd: str
    notes: Ad = {}
    """What the job's ad is to say of the machine."""
    nodes: tuple[NodeSlot, ...] = ()
    """Of a job of several nodes, those from number 1 on."""


class Begin(msgspec.Struct, frozen=True):
    """The worker says: the executable runs."""

    attempt: int
    claim: str
    pid: int
    at: float
    input: Transfer | None = None


class Suspend(msgspec.Struct, frozen=True):
    """The worker reports that the job's processes are stopped."""

    attempt: int
    claim: str
    processes: int
    at: float


class Continue(msgspec.Struct, frozen=True):
    """The worker says: they go on."""

    attempt: int
    claim: str
    at: float


class Disconnect(msgspec.Struct, frozen=True):
    """The machine of the attempt does not answer any more."""

    attempt: int
    claim: str
    reason: str


class Reconnect(msgspec.Struct, frozen=True):
    """It answers again, and has the attempt."""

    attempt: int
    claim: str


class Checkpoint(msgspec.Struct, frozen=True):
    """The worker says: what the job has done so far is saved, and it goes on."""

    attempt: int
    claim: str
    number: int
    at: float
    usage: Usage


class Tell(msgspec.Struct, frozen=True):
    """The worker says: the program of the job wants this in its ad, and these lines in its log."""

    attempt: int
    claim: str
    id: str
    attributes: Ad
    notes: list[str]


class End(msgspec.Struct, frozen=True):
    """The attempt is over: by the worker's word, or because its lease ran out on both sides."""

    attempt: int
    claim: str
    result: AttemptResult
    cool_down: float = 0.0
    """Seconds that the job waits if its start failed for a reason that may repeat; doubled each time."""
    more: Ad = {}
    """What its next run asks for, instead of being held because it ran out of that."""


class Hold(msgspec.Struct, frozen=True):
    """Keep the job from running until it is released."""

    reason: str
    by: str
    code: int = HoldCode.UserRequest
    subcode: int = 0


class Release(msgspec.Struct, frozen=True):
    """Let a held job run again."""

    reason: str
    by: str


class Remove(msgspec.Struct, frozen=True):
    """Never run the job again."""

    reason: str
    by: str


class RemoveX(msgspec.Struct, frozen=True):
    """Keep a removed job in the queue no longer, whatever its LeaveJobInQueue says."""

    reason: str
    by: str


class Pass(msgspec.Struct, frozen=True):
    """
    The worker says: these steps of the job's tasks are over; `first` is the number of the first of them, from 1.
    """

    attempt: int
    claim: str
    first: int
    steps: list[Step]


_Heard = (
    Begin | Suspend | Continue | Disconnect | Reconnect | Checkpoint | Tell | End | Pass | NodeBegin | NodeEnd
)
Command = Assign | Defer | _Heard | Hold | Order | Release | Remove | RemoveX
_Action = Hold | Release | Remove | RemoveX
_ACTIONS = frozenset(get_args(_Action))

_STAYS = frozenset({HoldCode.Unspecified, HoldCode.UserRequest, HoldCode.SpoolingInput})
"""HoldReasonCodes that a hold by the owner does not replace: unknown, his own, spooled input."""


_UNKNOWN = Ending(code=HoldCode.JobPolicyUndefined, reason="The job ended, and nobody knows how")


def decide(job: Job, command: Command) -> list[JobEvent]:
    """What is to be recorded; raises `Refused` for what the state does not allow. Repeats record nothing."""
    if type(command) in _ACTIONS:  # of a struct, to find that it is none of eleven others takes long
        return _act(job, cast("_Action", command))
    match command:
        case Assign():
            return _assign(job, command)
        case Defer(until=until):
            return [JobDeferred(until=until)] if job.runnable else []
        case Order():
            return _order(job, command)
        case _:
            return _hear(job, cast("_Heard", command))


def _order(job: Job, command: Order) -> list[JobEvent]:
    if job.status != "running":
        raise Refused(f"the job is {job.status}")
    if refusal := job.orders.refuse(command.kind):
        raise Refused(refusal)
    if job.orders.meets(command.kind):
        return []
    return [JobOrdered(attempt=job.attempt, order=command.kind, reason=command.reason, by=command.by)]


def _assign(job: Job, command: Assign) -> list[JobEvent]:
    if not job.runnable:
        raise Refused(f"the job is {job.status}, not idle")
    attempt, claim, slot, startd = job.attempt + 1, command.claim, command.slot, command.startd
    notes, nodes = command.notes, list(command.nodes)
    return [JobAssigned(attempt=attempt, claim=claim, slot=slot, startd=startd, notes=notes, nodes=nodes)]


def _hear(job: Job, command: _Heard) -> list[JobEvent]:
    if not job.claim or command.attempt != job.attempt or command.claim != job.claim:
        return []  # of an attempt that is over: a repeat changes nothing
    match command:
        case Begin(attempt=attempt, pid=pid, at=at):
            started = JobStarted(attempt=attempt, pid=pid, at=at, input=command.input)
            return [] if job.began else [started]
        case Suspend(attempt=attempt, processes=processes, at=at):
            tells = job.status == "running" and not job.suspended
            return [JobSuspended(attempt=attempt, processes=processes, at=at)] if tells else []
        case Continue(attempt=attempt, at=at):
            return [JobContinued(attempt=attempt, at=at)] if job.suspended else []
        case Disconnect() | Reconnect():
            return _silent(job, command) if isinstance(command, Disconnect) else _reconnected(job)
        case Checkpoint():
            return _checkpointed(job, command)
        case Tell():
            return _told(job, command)
        case End() | Pass():
            return _over(job, command) if isinstance(command, End) else _passed(job, command)
        case NodeBegin() | NodeEnd():
            return [*heard(job.gang, command)]
        case _:
            assert_never(command)


def _silent(job: Job, command: Disconnect) -> list[JobEvent]:
    tells = job.status == "running" and job.began and not job.disconnected
    return [JobDisconnected(attempt=command.attempt, reason=command.reason)] if tells else []


def _reconnected(job: Job) -> list[JobEvent]:
    return [JobReconnected(attempt=job.attempt)] if job.disconnected else []


def _checkpointed(job: Job, command: Checkpoint) -> list[JobEvent]:
    if command.number <= job.checkpoint:
        return []
    saved = JobCheckpointed(
        attempt=command.attempt, number=command.number, at=command.at, usage=command.usage
    )
    return [*_reconnected(job), saved]


def _told(job: Job, command: Tell) -> list[JobEvent]:
    if command.id == job.told or not (command.attributes or command.notes):
        return []
    told = JobTold(attempt=command.attempt, id=command.id, attributes=command.attributes, notes=command.notes)
    return [*_reconnected(job), told]


def _passed(job: Job, command: Pass) -> list[JobEvent]:
    """Each step once, and none before the one that comes before it."""
    known = job.checkpoint - (command.first - 1)
    new = command.steps[known : known + MOST_STEPS - job.checkpoint] if known >= 0 else []
    if not new:
        return []
    return [*_reconnected(job), JobStepped(attempt=command.attempt, first=job.checkpoint + 1, steps=new)]


def _over(job: Job, command: End) -> list[JobEvent]:
    """The end of an attempt.  A report of the worker ends a silence first, unless its lease has ended."""
    ran, ending = command.result.exit, command.result.ending
    silent = ending is not None and ending.code == VacateCode.ReconnectFailed
    heard = [] if silent else _reconnected(job)
    if ending is not None or ran is None:
        return [*heard, *_failed(job, command, ending or _UNKNOWN)]
    if job.status == "removed":
        gone = Ending(code=VacateCode.JobRemoved, reason="the job had been removed")
        return [*heard, JobVacated(attempt=command.attempt, ending=gone, usage=command.result.usage)]
    return [*heard, JobCompleted(attempt=command.attempt, exit=ran, usage=command.result.usage)]


def _failed(job: Job, command: End, ending: Ending) -> list[JobEvent]:
    # idle: held and released while it ran
    hold = ending.holds and not command.more and job.status in {"running", "idle"}
    vacated = JobVacated(
        attempt=command.attempt,
        ending=ending,
        exit=command.result.exit,
        usage=command.result.usage,
        cool_down=_cool_down(job, command, ending) if not hold else 0.0,
    )
    if hold:
        return [vacated, JobHeld(code=ending.code, subcode=ending.subcode, reason=ending.reason)]
    more = command.more if job.status != "removed" else {}  # this one leaves the queue now
    return [vacated, JobEdited(attributes=more)] if more else [vacated]


def _cool_down(job: Job, command: End, ending: Ending) -> float:
    if job.status not in {"running", "idle"}:
        return 0.0
    return cool_down(ending.code, job.failures, began=job.began, first=command.cool_down)


def _act(job: Job, command: _Action) -> list[JobEvent]:
    match command:
        case Hold():
            return _hold(job, command)
        case Release() if job.status == "held" and job.hold_code != HoldCode.SpoolingInput:
            return [JobReleased(reason=command.reason, by=command.by)]
        case Remove() if job.status == "removed":
            return []
        case RemoveX() if job.status == "removed":
            return [] if job.left else [JobLeft(reason=command.reason, by=command.by)]
        case Remove() if job.kept or job.status in {"idle", "running", "held"}:
            return [JobRemoved(reason=command.reason, by=command.by)]
        case _:
            raise Refused(f"the job is {job.status}")


def _hold(job: Job, command: Hold) -> list[JobEvent]:
    match job.status:
        case "idle" | "running":
            return [JobHeld(code=command.code, subcode=command.subcode, reason=command.reason, by=command.by)]
        case "held" if command.code == HoldCode.UserRequest and job.hold_code not in _STAYS:
            # Its owner wants it held, whatever else did: now no policy releases it.
            return [JobHeld(code=command.code, subcode=command.subcode, reason=command.reason, by=command.by)]
        case "held":
            return []
        case _:
            raise Refused(f"the job is {job.status}")


def evolve(job: Job, event: JobEvent) -> Job:
    """The state after an event; total, and never refuses: what is recorded has happened."""
    if type(event) in _LASTING:  # of a struct, to find that it is none of eight others takes long
        return _evolve_further(job, cast("_Lasting", event))
    match event:
        case JobAssigned():
            return Job(
                status="running",
                attempt=event.attempt,
                claim=event.claim,
                failures=job.failures,
                kept=job.kept,
                gang=gang_of(event),
            )
        case JobStarted():
            return msgspec.structs.replace(job, began=True)
        case JobSuspended() | JobContinued():
            return msgspec.structs.replace(job, suspended=isinstance(event, JobSuspended))
        case JobDisconnected() | JobReconnected():
            return msgspec.structs.replace(job, disconnected=isinstance(event, JobDisconnected))
        case JobCheckpointed():
            return msgspec.structs.replace(job, checkpoint=event.number)
        case JobTold() | JobStepped() | JobNodeStarted() | JobNodeEnded() | JobServed():
            return _after_saying(job, event)
        case JobOrdered():
            return msgspec.structs.replace(job, orders=ordered(job.orders, event))
        case JobDeferred() | JobEdited() | JobRouted() | JobUnrouted():
            # It waits for its next time from now on, or may fare better; and nobody would end another wait.
            return msgspec.structs.replace(job, cooling=0.0)
        case _:
            return _evolve_further(job, event)


def _after_saying(job: Job, event: JobTold | JobStepped | JobNodeStarted | JobNodeEnded | JobServed) -> Job:
    if isinstance(event, JobServed):
        return job  # what people do with its services is told, and changes nothing
    if isinstance(event, JobNodeStarted | JobNodeEnded):
        return msgspec.structs.replace(job, gang=evolved(job.gang, event))
    if isinstance(event, JobTold):
        return msgspec.structs.replace(job, told=event.id)
    return msgspec.structs.replace(job, checkpoint=event.first - 1 + len(event.steps))


def _evolve_further(job: Job, event: _Lasting) -> Job:
    """After what no suspension outlasts."""
    if job.suspended:
        job = msgspec.structs.replace(job, suspended=False)
    match event:
        case JobVacated():
            status = "idle" if job.status == "running" else job.status
            failures = job.failures + 1 if event.ending.code in MAY_REPEAT else 0
            return msgspec.structs.replace(
                job,
                status=status,
                claim="",
                began=False,
                failures=failures,
                disconnected=False,
                cooling=event.cool_down,
                orders=NONE,
                gang=None,
            )
        case JobCompleted():
            return msgspec.structs.replace(job, status="completed", claim="", disconnected=False, gang=None)
        case JobHeld():
            return msgspec.structs.replace(job, status="held", hold_code=event.code)
        case JobReleased():
            return msgspec.structs.replace(job, status="idle", failures=0, hold_code=0, cooling=0.0)
        case JobRemoved():
            return msgspec.structs.replace(job, status="removed", hold_code=0)
        case JobKept() | JobLeft():
            left = isinstance(event, JobLeft)
            return msgspec.structs.replace(job, kept=not left, left=left)
        case _:
            assert_never(event)
