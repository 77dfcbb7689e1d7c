"""
A simulated pool as it was at a moment, by its events: the folds of the services themselves, over the files of a run.

What its settings were is not among the events; it lies beside them (`kettle_services.simulator.results.run_description`).
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from kettle.archive import ArchivedLog
from kettle_services.negotiator.domain.verdicts import Verdicts
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.domain.simulation import NEGOTIATION, PeriodSimulation
from kettle_services.simulator.invented.period_of_workload import SHARD
from kettle_services.simulator.results.run_description import RunDescriptionError
from kettle_wire.events import CycleNegotiated, decode
from kettle_wire.frames import Frame


class PoolThen(msgspec.Struct, frozen=True):
    """One moment."""

    log: ArchivedLog
    at: int
    """Microseconds since the simulation began."""
    simulation: PeriodSimulation
    """It has begun there, and is not played: its queue, its slots and its accountant are those of the moment."""
    verdicts: Verdicts
    """What the cycles up to then have said."""

    @property
    def queue(self) -> Queue:
        """Of its only schedd."""
        return self.simulation.running.schedds[SHARD].queue

    @property
    def now(self) -> float:
        """The moment, in seconds since the simulation began."""
        return self.at / US


async def pool_then(directory: Path, rules: PoolRules, at: int | None = None) -> PoolThen:
    """
    How all was after everything that is recorded up to a moment; None: up to the end.

    Raises:
        ArchiveError: the files cannot be read.
        RunDescriptionError: the events are not those of a simulated pool.
    """
    log = ArchivedLog(directory)
    shards = [tenure.shard for tenure in await log.shards()]
    if SHARD not in shards:
        raise RunDescriptionError(
            f"{directory} has no events of {SHARD}: it is not from kettle simulate run --events"
        )
    if at is None:
        at = max([await _end(log, shard) for shard in shards])
    recording, verdicts = Recording(at, at, shards), Verdicts()
    for shard in shards:
        async for frame in log.read(shard):
            if frame.at > at:
                break
            recording.feed(frame)
            if shard == NEGOTIATION:
                _note(verdicts, frame)
    simulation = PeriodSimulation(recording.period(), rules, whole_ads=True)
    simulation.begin()
    simulation.advertise()
    return PoolThen(log, at, simulation, verdicts)


async def _end(log: ArchivedLog, shard: str) -> int:
    """When the last frame of a shard was."""
    tenure = await log.tenure(shard)
    assert tenure is not None, "it was among the shards"
    last: Sequence[Frame] = [frame async for frame in log.read(shard, after=tenure.frame - 1)]
    return last[-1].at


def _note(verdicts: Verdicts, frame: Frame) -> None:
    for entry in frame.entries:
        event = decode(entry.data)
        if isinstance(event, CycleNegotiated):
            verdicts.fold(event)
