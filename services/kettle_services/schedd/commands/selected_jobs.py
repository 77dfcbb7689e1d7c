"""What one command does to each of the jobs that it selects: the same for actions and for edits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from kettle.eventsourcing.command_pipeline import Recording
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.chunked_recording import SLICE, ChunkedRecording
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import selected_jobs
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.commands.schedd import Outcome, OutcomeRun, Select
from kettle_wire.events import JobEvent
from kettle_wire.jobs import JobId

DecideJobs = Callable[
    [Sequence[JobId], QueuedJob], Iterable[tuple[Sequence[JobId], Sequence[JobEvent], Outcome]]
]
"""
Of jobs of one cluster that share their entry: what is to be recorded of each, and what to answer, by those for which that is the same.
"""


class DecidedJobs(msgspec.Struct, frozen=True):
    """What a command comes to."""

    recording: Recording
    """What is still to be recorded."""
    runs: list[OutcomeRun]
    """What becomes of each job."""
    counts: Counter[tuple[int, Outcome]]
    """How many have which, by cluster."""


async def decide_each(
    recorder: QueueRecorder,
    settings: ScheddSettings,
    select: Select,
    person: str,
    decide: DecideJobs,
    *,
    at_once: bool = False,
) -> DecidedJobs:
    """
    Decide about each selected job that `person` may manage.

    Very many are recorded in chunks on the way, unless it has to be `at_once`, so that other commands get their turn. Where the
    service dies in between, it stays half done and unanswered, and a repeat does the rest.
    """
    runs: list[OutcomeRun] = []
    counts = Counter[tuple[int, Outcome]]()
    chunks = ChunkedRecording(recorder, most=settings.max_backlog // 2)
    queue = recorder.queue
    jobs = await selected_jobs(queue, select)
    for start in range(0, len(jobs), SLICE):
        if chunks.full and not at_once:
            await chunks.record_chunk()
        for entry, alike in _alike(queue, jobs[start : start + SLICE]):
            cluster, decided = alike[0].cluster, decide
            if not may_manage(person, queue.owner(alike[0]), settings.queue_super_users):
                decided = _denied
            for some, events, outcome in decided(alike, entry):
                chunks.add(some, entry.job, events)
                runs += _runs(some, outcome, entry.job.shown)
                counts[cluster, outcome] += len(some)
    if select.jobs:
        found = {(run.cluster, run.first + place) for run in runs for place in range(run.count)}
        missing = (job for job in select.jobs if (job.cluster, job.proc) not in found)
        runs += (OutcomeRun(job.cluster, job.proc, 1, "not_found") for job in missing)
    return DecidedJobs(chunks.take_rest(), runs, counts)


def _runs(jobs: Sequence[JobId], outcome: Outcome, status: str) -> Iterator[OutcomeRun]:
    """The outcome of jobs of one cluster, which are in their order."""
    first, last = jobs[0], jobs[-1]
    if last.proc - first.proc == len(jobs) - 1:
        yield OutcomeRun(first.cluster, first.proc, len(jobs), outcome, status)
    else:
        yield from (OutcomeRun(job.cluster, job.proc, 1, outcome, status) for job in jobs)


def _alike(queue: Queue, jobs: Sequence[JobId]) -> Iterator[tuple[QueuedJob, list[JobId]]]:
    """Those that are in the queue, in runs of one cluster that share their entry."""
    find = queue.jobs.find
    for _, run in groupby(jobs, key=lambda job: (job.cluster, id(find(job)))):
        alike = list(run)
        if (entry := find(alike[0])) is not None:
            yield entry, alike


def _denied(
    jobs: Sequence[JobId], _entry: QueuedJob
) -> Iterable[tuple[Sequence[JobId], Sequence[JobEvent], Outcome]]:
    yield jobs, (), "denied"
