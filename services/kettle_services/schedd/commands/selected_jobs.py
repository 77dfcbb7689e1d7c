"""What one command does to each of the jobs that it selects: the same for actions and for edits."""

from collections.abc import Callable, Sequence

from kettle.eventsourcing.command_pipeline import Recording
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.queue.chunked_recording import ChunkedRecording
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import selected_jobs
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.commands.schedd import JobOutcome, Outcome, Select
from kettle_wire.events import JobEvent
from kettle_wire.jobs import JobId

DecideJob = Callable[[JobId, QueuedJob], tuple[Sequence[JobEvent], Outcome]]
"""What is to be recorded of one job, and what to answer of it."""


async def decide_each(
    recorder: QueueRecorder,
    settings: ScheddSettings,
    select: Select,
    person: str,
    decide: DecideJob,
    *,
    at_once: bool = False,
) -> tuple[Recording, list[JobOutcome]]:
    """
    Decide about each selected job that `person` may manage; what is still to be recorded, and one outcome for each job.

    Very many are recorded in chunks on the way, unless it has to be `at_once`, so that other commands get their turn. Where the
    service dies in between, it stays half done and unanswered, and a repeat does the rest.
    """
    outcomes: list[JobOutcome] = []
    chunks = ChunkedRecording(recorder, most=settings.max_backlog // 2)
    queue = recorder.queue
    for job in await selected_jobs(queue, select):
        if chunks.full and not at_once:
            await chunks.record_chunk()
        if (entry := queue.jobs.get(job)) is None:
            continue
        if may_manage(person, queue.owner(job), settings.queue_super_users):
            events, outcome = decide(job, entry)
        else:
            events, outcome = (), "denied"
        chunks.add(job, entry.job, events)
        outcomes.append(JobOutcome(job, outcome, entry.job.shown))
    if select.jobs:
        found = {outcome.job for outcome in outcomes}
        outcomes += [JobOutcome(job, "not_found") for job in select.jobs if job not in found]
    return chunks.take_rest(), outcomes
