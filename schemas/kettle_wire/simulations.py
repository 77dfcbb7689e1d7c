"""What a simulation of a pool came to, as `kettle simulate run --json` writes it, and how far it is."""

import msgspec


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """In seconds, but for what has no unit; None: no job began."""

    jobs: int
    ended: int
    makespan: float
    """From the first submission until the last end was reported, or it was stopped."""
    wait_mean: float | None
    wait_median: float | None
    wait_p95: float | None
    """From submission to start."""
    slowdown_mean: float | None
    """Bounded: time from submission to end over duration, of which 10 s is the least."""
    core_hours: float
    """Also of those that still ran when it was stopped."""
    lost_core_hours: float
    """
    Of runs that ended with their hosts, or made room for others; they are not among `core_hours`, and are among what was in use.
    """
    utilisation: float
    """The part of all cores' time, as long as their hosts were there over the makespan, in which jobs ran."""
    cost: float | None = None
    """What all hosts cost that have a price, over the makespan; None: it is told of all users together only, and if there is a price."""


class SimulatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one seed."""

    seed: int | None
    """None: the one of the file."""
    all: Figures
    users: dict[str, Figures]
    groups: dict[str, Figures]
    """Of accounting groups with all groups below them, if there are any."""


class SimulatedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """All seeds together."""

    runs: list[SimulatedRun]
    skipped: int
    """Lines of traces that are no jobs."""


class SimulationProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is: a line of what `kettle simulate run --progress` writes to standard error."""

    run: int
    """The number of the seed that is played, from 1 on."""
    runs: int
    ended: int
    """Of its jobs."""
    jobs: int
