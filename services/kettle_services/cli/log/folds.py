"""
What the events of a shard come to: the folds of the services themselves.

The one place outside of a service that uses its folds. An auditor with folds of its own would prove that two programs
agree, not that the stored state is right; a time machine with folds of its own would show a past that never was.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from kettle.audit import Fold, Folds
from kettle.classad import ClassAd
from kettle.eventsourcing.stream_states import StreamStates
from kettle.jobs.history import JobHistory, OwnerTotals
from kettle_services.ce.domain.state import CeState
from kettle_services.collector.domain.machine_presence import fold as fold_machines
from kettle_services.collector.domain.machine_presence import row_of
from kettle_services.dagman.domain.working_set import row_of as row_of_workflow
from kettle_services.iam.domain import state as identity
from kettle_services.negotiator.domain.principals import LEAST, Principal, at_time
from kettle_services.negotiator.domain.principals import fold as fold_principal
from kettle_services.negotiator.domain.principals import row_of as row_of_principal
from kettle_services.scaler.domain.state import ScalerState
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.replay import Replay
from kettle_services.sessions.domain.state import SessionsState
from kettle_wire.events import (
    CycleNegotiated,
    Event,
    IdentityEvent,
    MachineJoined,
    MachineLeft,
    PrincipalCharged,
    PrincipalEvent,
)
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId


def schedd_fold(shard: str) -> Fold:
    """What the events of a schedd's shard make of its working set."""
    queue = Queue(shard.partition(".")[2])

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        return [(change.stream, change.state) for change in queue.apply(stream, event, at)]

    return fold


def collector_fold(shard: str) -> Fold:
    """What the events of a collector's shard make of its working set."""
    del shard

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        del at
        return [(stream, row_of(event))]

    return fold


def negotiator_fold(shard: str) -> Fold:
    """
    What the events of a negotiator's shard make of its working set: the accountant's principals, and nothing of cycles.
    """
    del shard
    principals: dict[str, Principal | None] = {}

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        del at
        if not isinstance(event, PrincipalEvent):
            return []
        principals[stream] = fold_principal(principals.get(stream), event)
        return [(stream, row_of_principal(principals[stream]))]

    return fold


def identity_fold(shard: str) -> Fold:
    """What the events of iam's shard make of its working set."""
    del shard
    register = identity.Register()

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        del at
        assert isinstance(event, IdentityEvent), f"{stream} has a {type(event).__name__}"
        state = register.apply(stream, event)
        return [(stream, None if identity.forgotten(stream, state) else identity.row_of(state))]

    return fold


def dagman_fold(shard: str) -> Fold:
    """What the events of a dagman's shard make of its working set."""
    del shard

    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        del at
        return [(stream, row_of_workflow(event))]

    return fold


def ce_fold(shard: str) -> Fold:
    """What the events of an entrypoint's shard make of its working set."""
    del shard
    return _fold_of(CeState())


def sessions_fold(shard: str) -> Fold:
    """What the events of a service of interactive sessions make of its working set."""
    del shard
    return _fold_of(SessionsState())


def scaler_fold(shard: str) -> Fold:
    """What the events of a scaler's shard make of its working set."""
    del shard
    return _fold_of(ScalerState())


def _fold_of(state: StreamStates) -> Fold:
    def fold(stream: str, event: Event, at: int) -> Iterable[tuple[str, bytes | None]]:
        return [(stream, state.apply(stream, event, at / 1e6))]

    return fold


WORKING_SETS: Final[Folds] = {
    "schedd": schedd_fold,
    "collector": collector_fold,
    "dagman": dagman_fold,
    "ce": ce_fold,
    "sessions": sessions_fold,
    "negotiator": negotiator_fold,
    "scaler": scaler_fold,
    identity.SHARD: identity_fold,
}
"""By kind of shard."""


class JobThen(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was in the queue."""

    shard: str
    job: str
    owner: str
    status: str
    since: int
    """Seconds since the epoch."""
    attempt: int
    slot: str
    """Where the attempt lived; empty: none did."""
    cores: float


class ClaimThen(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that was held."""

    shard: str
    claim: str
    slot: str
    startd: str
    submitter: str
    granted: int
    """Microseconds since the epoch."""
    job: str
    """Whose attempt lived on it; empty: nobody's."""


class MachineThen(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that was there."""

    machine: str
    joined: int
    """Microseconds since the epoch."""
    cpus: int
    memory: int
    """MiB."""


class OwnerThen(msgspec.Struct, kw_only=True):
    """What an owner had in the queue, and had used; times in seconds."""

    owner: str
    priority: float = LEAST
    """
    The real priority; smaller is better. Factors that nobody set are a setting, so they are not in the log.
    """
    running: int = 0
    running_cores: float = 0.0
    idle: int = 0
    held: int = 0
    jobs_completed: int = 0
    attempts: int = 0
    wall: float = 0.0
    slot_time: float = 0.0
    cpu: float = 0.0


class QueueThen:
    """The queue of one schedd, its claims, and what was used of them."""

    def __init__(self, shard: str) -> None:
        self.shard = shard
        name = shard.partition(".")[2]
        self._replay = Replay(name)
        self._past = JobHistory(name)
        self._spent: dict[str, OwnerTotals] = {}

    @cached_property
    def queue(self) -> Queue:
        """The queue after all that was fed."""
        return self._replay.queue()

    def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """Fold the next frame."""
        self._replay.feed(frame)
        self._past.feed(frame, events)
        for attempt in self._past.apply_event().attempts:
            self._spent.setdefault(attempt.owner, OwnerTotals()).add(attempt)

    def jobs(self) -> list[JobThen]:
        """The jobs in the queue, in its order."""
        return [self._job(job) for job in sorted(self.queue.jobs)]

    def _job(self, job: JobId) -> JobThen:
        ad, state = self.queue.ad(job), self.queue.jobs[job].job
        claim = self.queue.claims.get(state.claim)
        since, cores = ad.get("EnteredCurrentStatus"), ClassAd.from_wire(ad).find("requestcpus")
        return JobThen(
            shard=self.shard,
            job=str(job),
            owner=self.queue.owner(job),
            status=state.status,
            since=since if isinstance(since, int) else 0,
            attempt=state.attempt.number,
            slot=claim.granted.slot if claim is not None else str(ad.get("RemoteHost", "")),
            cores=float(cores) if isinstance(cores, int | float) else 1.0,
        )

    def claims(self) -> list[ClaimThen]:
        """The claims that are held, by slot."""
        held = sorted(
            self.queue.claims.values(), key=lambda claim: (claim.granted.startd, claim.granted.slot)
        )
        return [
            ClaimThen(
                shard=self.shard,
                claim=claim.granted.claim,
                slot=claim.granted.slot,
                startd=claim.granted.startd,
                submitter=claim.granted.submitter,
                granted=claim.at,
                job=str(claim.job) if claim.job is not None else "",
            )
            for claim in held
        ]

    def add_to(self, owners: dict[str, OwnerThen]) -> None:
        """Add what each owner has here."""
        for job in self.jobs():
            owner = owners.setdefault(job.owner, OwnerThen(owner=job.owner))
            match job.status:
                case "running":
                    owner.running += 1
                    owner.running_cores += job.cores
                case "idle":
                    owner.idle += 1
                case "held":
                    owner.held += 1
                case _:
                    pass
        for name, spent in self._spent.items():
            owner = owners.setdefault(name, OwnerThen(owner=name))
            owner.jobs_completed += spent.jobs_completed
            owner.attempts += spent.attempts
            owner.wall += spent.wall / 1e6
            owner.slot_time += spent.slot_time / 1e6
            owner.cpu += spent.cpu / 1e6


class MachinesThen:
    """The machines of a pool."""

    def __init__(self, shard: str) -> None:
        self.shard = shard
        self._there: set[str] = set()
        self._joined: dict[str, tuple[MachineJoined, int]] = {}

    def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """Fold the next frame."""
        for event in events:
            fold_machines(self._there, event)
            match event:
                case MachineJoined():
                    self._joined[event.machine] = (event, frame.at)
                case MachineLeft():
                    self._joined.pop(event.machine, None)
                case _:
                    pass

    def machines(self) -> list[MachineThen]:
        """Those that are there, by name."""
        return [
            MachineThen(machine=name, joined=at, cpus=joined.cpus, memory=joined.memory)
            for name in sorted(self._there)
            for joined, at in [self._joined[name]]
        ]


class CyclesThen:
    """The last negotiation, and the accountant's principals."""

    def __init__(self, shard: str) -> None:
        self.shard = shard
        self.last: CycleNegotiated | None = None
        self._principals: dict[str, Principal] = {}
        self._half_life = 0.0

    def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """Fold the next frame."""
        del frame
        for event in events:
            if isinstance(event, CycleNegotiated):
                self.last = event
            elif isinstance(event, PrincipalEvent):
                after = fold_principal(self._principals.pop(event.principal, None), event)
                if after is not None:
                    self._principals[event.principal] = after
                if isinstance(event, PrincipalCharged):
                    self._half_life = event.half_life

    @property
    def principals(self) -> Mapping[str, Principal]:
        """All who are known, accounting groups too, as of their last charge."""
        return self._principals

    def priorities(self, at: float) -> dict[str, float]:
        """Real priorities at a moment, seconds since the epoch, of those who were ever charged."""
        if not self._half_life:
            return {}
        return {
            name: at_time(principal, at, self._half_life).priority
            for name, principal in self._principals.items()
        }


Then: TypeAlias = QueueThen | MachinesThen | CyclesThen


def fold_of(shard: str) -> Then | None:
    """What folds the events of a shard; None for one of another kind."""
    match shard.partition(".")[0]:
        case "schedd":
            return QueueThen(shard)
        case "collector":
            return MachinesThen(shard)
        case "negotiator":
            return CyclesThen(shard)
        case _:
            return None
