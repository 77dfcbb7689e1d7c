"""What the events of an entrypoint's shard come to: a state for each stream."""

from typing import Final

import msgspec

from kettle.eventsourcing.stream_states import Streams, StreamStates
from kettle_services.ce.domain.attempts.attempt import BatchClaim, evolve
from kettle_services.ce.domain.payloads import Pilot, fold_pilot
from kettle_wire.events import (
    DrainBegun,
    DrainOver,
    RouteDecided,
    RouteEvent,
    RouteFailed,
    RouteForgotten,
    RoutesLoaded,
    RoutesRefused,
)
from kettle_wire.events.batch import BatchEvent

FILE: Final = "routes/file"
"""The stream of the files with routes."""
DRAIN: Final = "door/drain"
"""The stream of whether it is drained."""
DECISION: Final = "decision/"
ROUTE: Final = "route/"


class RoutesFile(msgspec.Struct, frozen=True, kw_only=True):
    """The routes in force, and a newer file that is not."""

    version: str = ""
    text: str = ""
    source: str = ""
    loaded: float = 0.0
    refused: str = ""
    """The version of the newer file."""
    problems: list[str] = []


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the entrypoint takes jobs, as an administrator has said last."""

    draining: bool = False
    since: float = 0.0
    by: str = ""
    reason: str = ""


class RouteHealth(msgspec.Struct, frozen=True, kw_only=True):
    """How a route fares."""

    until: float = 0.0
    """It takes fewer jobs until then, seconds since the epoch."""
    failures: int = 0
    reason: str = ""


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """That something was decided about jobs of a cluster."""

    turn: int = 0
    """The place in the turns after it."""


def fold_file(file: RoutesFile | None, event: RouteEvent, at: float) -> RoutesFile:
    """After a file was read."""
    before = file or RoutesFile()
    match event:
        case RoutesLoaded(version=version, text=text, source=source):
            return RoutesFile(version=version, text=text, source=source, loaded=at)
        case RoutesRefused(version=version, problems=problems):
            return msgspec.structs.replace(before, refused=version, problems=problems)
        case _:
            return before


def fold_door(door: Door | None, event: RouteEvent, at: float) -> Door:
    """After an administrator has begun or ended a drain."""
    match event:
        case DrainBegun(by=by, reason=reason):
            return Door(draining=True, since=at, by=by, reason=reason)
        case DrainOver(by=by):
            return Door(since=at, by=by)
        case _:
            return door or Door()


def fold_route(health: RouteHealth | None, event: RouteEvent, at: float) -> RouteHealth | None:
    """After jobs of a route have failed."""
    del at
    if isinstance(event, RouteFailed):
        return RouteHealth(until=event.until, failures=event.failures, reason=event.reason)
    return health


def fold_decision(decided: Decided | None, event: RouteEvent, at: float) -> Decided | None:
    """After a decision; nothing is kept of a cluster of which no job is in the queue."""
    del at
    match event:
        case RouteDecided(turn=turn):
            return Decided(turn=turn)
        case RouteForgotten():
            return None
        case _:
            return decided


def fold_claim(claim: BatchClaim | None, event: BatchEvent, at: float) -> BatchClaim | None:
    """After something has happened to a claim of a batch system, or to its job."""
    del at
    return evolve(claim, event)


class CeState(StreamStates):
    """Everything that an entrypoint has recorded and needs for its next decision."""

    def __init__(self) -> None:
        self.files: Final = Streams(RoutesFile, fold_file)
        self.doors: Final = Streams(Door, fold_door)
        self.routes: Final = Streams(RouteHealth, fold_route)
        self.decisions: Final = Streams(Decided, fold_decision)
        self.claims: Final = Streams(BatchClaim, fold_claim)
        self.pilots: Final = Streams(Pilot, fold_pilot)
        super().__init__(
            {
                "routes": self.files,
                "door": self.doors,
                "route": self.routes,
                "decision": self.decisions,
                "batch": self.claims,
                "payload": self.pilots,
            }
        )

    @property
    def file(self) -> RoutesFile:
        """The routes in force."""
        return self.files.states.get("file", RoutesFile())

    @property
    def door(self) -> Door:
        """Whether it takes jobs."""
        return self.doors.states.get("drain", Door())

    @property
    def turn(self) -> int:
        """The place in the turns of routes that are taken one after the other."""
        return max((each.turn for each in self.decisions.states.values()), default=0)
