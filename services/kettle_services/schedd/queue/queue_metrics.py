"""What a schedd measures of its queue."""

from collections.abc import Mapping
from typing import Final

from kettle.runtime import Telemetry
from kettle.runtime.expression_budgets import watch_budgets
from kettle_services.schedd.domain.queue.fold import Queue, job_of_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.attempts import Usage
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactoryMaterialized,
    JobCompleted,
    JobHeld,
    JobRemoved,
    JobsChanged,
    JobStarted,
    JobVacated,
)
from kettle_wire.moved_files import MovedFiles
from kettle_wire.telemetry import file_metrics
from kettle_wire.telemetry import queue_metrics as metrics

_STATES: Final = ("idle", "running", "held")
_MICROSECOND: Final = 1e-6
_ENDED: Final[Mapping[object, str]] = {
    JobRemoved.__struct_config__.tag: "removed",
    JobHeld.__struct_config__.tag: "held",
}
"""By type of the event."""


def measure_queue(telemetry: Telemetry, recorder: QueueRecorder, *, owners: bool) -> None:
    """
    Measure from now on what is in the queue and what becomes of jobs; with `owners` also whose jobs are there.
    """
    watch_budgets(telemetry)
    if telemetry.measurements is None:
        return
    queue = recorder.queue
    telemetry.observe(metrics.JOBS, lambda: _by_state(queue))
    if owners:
        telemetry.observe(
            metrics.SUBMITTER_JOBS,
            lambda: {
                (submitter, state): tally.get(state, 0)
                for submitter, tally in queue.tally.by_submitter.items()
                for state in _STATES
            },
        )
    telemetry.observe(metrics.CLAIMS, lambda: len(queue.claims))
    telemetry.observe(metrics.BACKLOG, lambda: recorder.shard.backlog)
    recorder.on_record(_Outcomes(telemetry, queue).note)


def _by_state(queue: Queue) -> dict[tuple[str, ...], float]:
    tallies = list(queue.tally.by_submitter.values())
    return {(state,): sum(tally.get(state, 0) for tally in tallies) for state in _STATES}


class _Outcomes:
    """Counts what becomes of jobs, as it is recorded."""

    def __init__(self, telemetry: Telemetry, queue: Queue) -> None:
        self._queue = queue
        self._submitted = telemetry.counter(metrics.JOBS_SUBMITTED)
        self._jobs = telemetry.counter(metrics.JOBS_ENDED)
        self._attempts = telemetry.counter(metrics.ATTEMPTS_ENDED)
        self._cpu = telemetry.counter(metrics.JOB_CPU_TIME)
        self._wall = telemetry.counter(metrics.JOB_WALL_TIME)
        self._files = telemetry.counter(file_metrics.FILES_MOVED)
        self._bytes = telemetry.counter(file_metrics.FILES_BYTES)
        self._failed = telemetry.counter(file_metrics.FILES_FAILED)
        self._waits = telemetry.histogram(metrics.JOB_WAIT)

    def note(self, stream: str, event: Event, at_us: int) -> None:
        """An event was folded, in a frame of that time."""
        match event:
            case JobStarted(attempt=1):
                self._started(stream, at_us)
            case JobCompleted():
                self._jobs.add(1, "completed" if event.exit.code == 0 else "failed")
                if event.attempt:
                    self._over("completed", "delivered", event.usage)
            case JobVacated():
                self._over("vacated", "wasted", event.usage)
            case JobRemoved() | JobHeld():
                self._jobs.add(1, _ENDED[type(event).__struct_config__.tag])
            case JobsChanged():
                self._many(event)
            case ClustersSubmitted() | ClusterSubmitted(late=False):
                self._submitted.add(len(event.rows))
            case FactoryMaterialized():
                self._submitted.add(event.count)
            case _:
                pass

    def _started(self, stream: str, at_us: int) -> None:
        cluster = self._queue.clusters.get(job_of_stream(stream).cluster)
        if cluster is not None:
            self._waits.record(max(0, at_us - cluster.at) * _MICROSECOND)

    def _over(self, outcome: str, use: str, usage: Usage) -> None:
        self._attempts.add(1, outcome)
        self._cpu.add(usage.user_cpu + usage.system_cpu, use)
        self._wall.add(usage.wall, use)
        if usage.moved is not None:
            self._files_moved(usage.moved)

    def _files_moved(self, moved: MovedFiles) -> None:
        for source, total in moved.totals.items():
            for hit, count in (("yes", total.hits), ("no", total.files - total.hits)):
                if count > 0:
                    self._files.add(count, source, hit)
            self._bytes.add(total.bytes, source)
        if moved.failed:
            self._failed.add(moved.failed)

    def _many(self, event: JobsChanged) -> None:
        if (outcome := _ENDED.get(event.type)) is not None:
            self._jobs.add(sum(procs.count for procs in event.jobs), outcome)
