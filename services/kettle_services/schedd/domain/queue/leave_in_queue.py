"""
Jobs that stay in the queue after their end, as long as their LeaveJobInQueue is true.

What the expression says is recorded, since time may change it: `job.kept` right before the end of a job that stays, and
`job.left` when nothing keeps it any more. So the folds evaluate nothing, and jobs that do not use it have neither event.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final, cast

from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute, is_true
from kettle.jobs import apply
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.jobs.job import evolve
from kettle_services.schedd.domain.jobs.leave_in_queue import ATTRIBUTE
from kettle_services.schedd.domain.queue.fold import Queue, job_of_stream
from kettle_wire.ads import Ad
from kettle_wire.events import (
    Event,
    JobCompleted,
    JobEdited,
    JobEvent,
    JobKept,
    JobLeft,
    JobRemoved,
    JobVacated,
)
from kettle_wire.jobs import JobId

ENDINGS: Final = frozenset({JobCompleted, JobEdited, JobRemoved, JobVacated})
"""The events after which a job may be over, or may say something else about its staying."""
_US: Final = 1_000_000
_LEFT: Final = JobLeft(reason="its LeaveJobInQueue is not true (any more)")


def keeps(ad: Ad, now: float) -> bool:
    """Whether a job with this ad, which has ended, wants to stay."""
    try:
        return is_true(evaluate_attribute(ATTRIBUTE, ClassAd.from_wire(ad), context=evaluation.at(now)))
    except EvaluationFailed:
        return False


def settled(queue: Queue, changes: Sequence[tuple[str, Event]], at: int) -> list[tuple[str, Event]]:
    """
    The changes, recorded at `at` microseconds, with the events that they cause for jobs that stay in the queue.

    Events of one job are next to each other.  Changes of many jobs at once are not handled here, but by `apart`.
    """
    found: list[tuple[str, Event]] = []
    for stream, group in groupby(changes, key=lambda change: change[0]):
        some = list(group)
        if not any(type(event) in ENDINGS for _, event in some) or not concerned(
            queue, job := job_of_stream(stream)
        ):
            found += some
            continue
        events = _settled(queue, job, [cast("JobEvent", event) for _, event in some], at)
        found += ((stream, event) for event in events)
    return found


def concerned(queue: Queue, job: JobId) -> bool:
    """Whether a job is in the queue and says something about its staying there."""
    return job.cluster in queue.staying.clusters and job in queue.jobs


def release(queue: Queue, job: JobId, now: float) -> list[JobEvent]:
    """What is to be recorded of a job that was kept: nothing, as long as it wants to stay."""
    return [] if keeps(queue.ad(job), now) else [_LEFT]


def _settled(queue: Queue, job: JobId, events: list[JobEvent], at: int) -> list[JobEvent]:
    state, ad = queue.jobs[job].job, queue.ad(job)
    for event in events:
        state = evolve(state, event)
        apply(ad, event, at)
    if not state.ended or state.stay == "left":
        return events
    stays = keeps(ad, at / _US)
    if stays == state.kept:
        return events
    return [JobKept(), *events] if stays else [*events, _LEFT]
