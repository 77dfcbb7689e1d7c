"""`kettle log at`: the pool as it was at a moment."""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import home_directory
from kettle.eventsourcing.log import LogError
from kettle.terminal.quantities import clock, counted, run_time, size
from kettle_services.cli.errors import CommandError
from kettle_services.cli.log.databases import ShardLocation, places_of
from kettle_services.cli.log.folds import (
    ClaimThen,
    CyclesThen,
    JobThen,
    MachinesThen,
    MachineThen,
    OwnerThen,
    QueueThen,
    Then,
    fold_of,
)
from kettle_services.cli.log.frame_search import frame_at, time_of
from kettle_services.cli.output.progress_bars import Bar, bars
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import micros, precise, rfc3339
from kettle_wire.event_expansion import events_of, expanded
from kettle_wire.events import CycleNegotiated, UnknownEventError

_OFTEN: Final = 256
_RIGHT: Final = frozenset(
    {"ATTEMPT", "CORES", "MEMORY", "RUNNING", "IDLE", "HELD", "DONE", "WALL", "SLOT TIME"}
)


class ShardThen(msgspec.Struct, frozen=True, kw_only=True):
    """Where a shard was."""

    shard: str
    frame: int
    """The last frame that is not later than the moment; 0: there was none."""
    at: str
    """Its time; empty for frame 0."""
    frames: int
    """How many there are by now."""
    next_at: str
    """When the next one came; empty: none has come."""


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """The pool at one moment."""

    at: str
    shards: list[ShardThen]
    jobs: list[JobThen]
    claims: list[ClaimThen]
    machines: list[MachineThen]
    owners: list[OwnerThen]
    """By real priority, the best first; where that is equal, the owner with the fewest running jobs first."""
    cycle: CycleNegotiated | None


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Fold and print."""
    home: Path = arguments.home or home_directory()

    async def look() -> Moment:
        async with places_of(arguments, home) as found:
            with bars(screen, "frames") as bar:
                named = found.named(arguments.shard)
                return await moment_of(named, arguments.time, owners=arguments.owner, bar=bar)

    try:
        moment = asyncio.run(look())
    except LogError as error:
        raise CommandError(f"{error}; kettle log check tells what is wrong") from error
    if screen.as_json:
        screen.json(moment)
    else:
        _print(moment, arguments.time, screen)
    return 0


async def moment_of(
    found: Sequence[ShardLocation], at: int, *, owners: Sequence[str] = (), bar: Bar
) -> Moment:
    """
    The pool at `at`, microseconds since the epoch, from the log alone; `owners`: only what is theirs.

    Raises:
        CommandError: an event before that cannot be read or folded.
    """
    shards: list[ShardThen] = []
    then: list[Then] = []
    for place in found:
        frame = await frame_at(place.log, place.shard, place.tenure.frame, at)
        shards.append(await _shard(place, frame))
        if (folded := await fold(place, frame, bar)) is not None:
            then.append(folded)
    return _moment(at, shards, then, owners)


async def fold(place: ShardLocation, until: int, bar: Bar) -> Then | None:
    """The fold of a shard's events up to a frame; None for a shard that has none."""
    folded = fold_of(place.shard)
    if folded is None:
        return None
    async for frame in place.log.read(place.shard, until=until):
        try:
            whole = expanded(frame)
            folded.feed(whole, events_of(whole))
        except UnknownEventError as error:
            raise CommandError(f"{place.shard}, frame {frame.number}: {error}") from error
        if frame.number % _OFTEN == 0:
            bar(place.shard, frame.number, until)
    return folded


async def _shard(place: ShardLocation, frame: int) -> ShardThen:
    last = place.tenure.frame
    return ShardThen(
        shard=place.shard,
        frame=frame,
        at=rfc3339(await time_of(place.log, place.shard, frame)) if frame else "",
        frames=last,
        next_at=rfc3339(await time_of(place.log, place.shard, frame + 1)) if frame < last else "",
    )


def _moment(at: int, shards: list[ShardThen], then: Sequence[Then], owners: Sequence[str]) -> Moment:
    queues = [folded for folded in then if isinstance(folded, QueueThen)]
    people: dict[str, OwnerThen] = {}
    for queue in queues:
        queue.add_to(people)
    for cycles in (folded for folded in then if isinstance(folded, CyclesThen)):
        for name, priority in cycles.priorities(at / 1e6).items():
            people.setdefault(name, OwnerThen(owner=name)).priority = priority
    wanted = frozenset(owners) or people.keys() | {c.submitter for q in queues for c in q.claims()}
    return Moment(
        at=rfc3339(at),
        shards=shards,
        jobs=[job for queue in queues for job in queue.jobs() if job.owner in wanted],
        claims=[claim for queue in queues for claim in queue.claims() if claim.submitter in wanted],
        machines=[m for folded in then if isinstance(folded, MachinesThen) for m in folded.machines()],
        owners=sorted(
            (owner for owner in people.values() if owner.owner in wanted),
            key=lambda owner: (owner.priority, owner.running, owner.owner),
        ),
        cycle=next((folded.last for folded in then if isinstance(folded, CyclesThen)), None),
    )


def _print(moment: Moment, at: int, screen: Screen) -> None:
    screen.say(screen.paint(f"The pool at {precise(at)}", "strong"))
    if at > micros(datetime.now(UTC)):
        screen.say("That is still to come: this is the pool as it is recorded up to now.")
    for shard in moment.shards:
        where = (
            f"frame {shard.frame} of {shard.frames}" if shard.frame else f"before frame 1 of {shard.frames}"
        )
        closed = f", closed at {_local(shard.at)}" if shard.at else ""
        following = f"; the next came at {_local(shard.next_at)}" if shard.next_at else ""
        screen.say(f"{shard.shard}: {where}{closed}{following}")
    _print_jobs(moment, screen)
    _print_rest(moment, screen)


def _local(at: str) -> str:
    return precise(micros(datetime.fromisoformat(at)))


def _print_jobs(moment: Moment, screen: Screen) -> None:
    screen.say()
    titles = ("JOB", "OWNER", "STATUS", "SINCE", "ATTEMPT", "SLOT")
    rows = [(j.job, j.owner, j.status, clock(j.since), j.attempt, j.slot or "-") for j in moment.jobs]
    if rows:
        screen.table(titles, rows, styles=[job.status for job in moment.jobs], right=_RIGHT)
    screen.say(f"{counted(len(rows), 'job')} in the queue.")
    if moment.claims:
        screen.say()
        screen.table(
            ("CLAIM ON", "FOR", "SINCE", "JOB"),
            [(c.slot, c.submitter, clock(c.granted / 1e6), c.job or "-") for c in moment.claims],
        )
    screen.say(f"{counted(len(moment.claims), 'claim')} held.")


def _print_rest(moment: Moment, screen: Screen) -> None:
    if moment.machines:
        screen.say()
        screen.table(
            ("MACHINE", "CORES", "MEMORY", "SINCE"),
            [(m.machine, m.cpus, size(1024 * m.memory), clock(m.joined / 1e6)) for m in moment.machines],
            right=_RIGHT,
        )
    screen.say(f"{counted(len(moment.machines), 'machine')} in the pool.")
    if moment.owners:
        screen.say()
        titles = ("OWNER", "PRIORITY", "RUNNING", "CORES", "IDLE", "HELD", "DONE", "WALL", "SLOT TIME")
        rows = [
            (
                o.owner, o.priority, o.running, f"{o.running_cores:g}", o.idle, o.held, o.jobs_completed,
                run_time(o.wall), run_time(o.slot_time),
            )
            for o in moment.owners
        ]  # fmt: skip
        screen.table(titles, rows, right=_RIGHT)
        screen.say(
            "Shares are in inverse proportion to real priority times priority factor (kettle userprio)."
        )
    if moment.cycle is not None:
        cycle = moment.cycle
        screen.say()
        screen.say(
            f"The last negotiation on record was cycle {cycle.cycle} at {precise(round(cycle.started * 1e6))}: "
            f"{counted(len(cycle.matches), 'match', 'matches')}, "
            f"{counted(len(cycle.rejections), 'refusal')}, {counted(cycle.slots, 'free slot')}."
        )
