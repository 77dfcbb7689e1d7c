"""
Which jobs are removed along with others: those of which a job says so by OtherJobRemoveRequirements, as a DAG job does of its
nodes.
"""

import time
from collections.abc import Callable
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.constraint import Constraint, parsed
from kettle_services.schedd.queue.selection import selected_jobs
from kettle_wire.commands.schedd import Select
from kettle_wire.jobs import JobId

ATTRIBUTE: Final = "OtherJobRemoveRequirements"
"""An expression in a text: which other jobs of its owner are removed with a job."""


async def removed_along(queue: Queue, select: Select) -> list[JobId]:
    """
    The jobs that are removed with those of a selection, and are none of it.

    A job that runs has none: its process is told, and sees to the others.
    """
    saying = [each for each in queue.clusters.values() if ATTRIBUTE in each.submitted.ad]
    if not saying:
        return []
    means = _meant(queue, select)
    others = [
        Select(owners=[each.submitted.owner], constraint=text)
        for each in saying
        for job in each.jobs()
        if not queue.jobs[job].job.claim and means(job) and (text := _said(queue, job))
    ]
    found: set[JobId] = set()
    for each in others:
        found.update(await selected_jobs(queue, each))
    return sorted(job for job in found if job in queue.jobs and not means(job))


def _meant(queue: Queue, select: Select) -> Callable[[JobId], bool]:
    """Whether a job in the queue is one of a selection."""
    jobs, clusters, owners = set(select.jobs), set(select.clusters), set(select.owners)
    everything = not (jobs or clusters or owners)
    expression = parsed(select.constraint)
    constraint = None if expression is None else Constraint(queue, expression, time.time())

    def means(job: JobId) -> bool:
        listed = everything or job in jobs or job.cluster in clusters or queue.owner(job) in owners
        return listed and (constraint is None or constraint.holds(job))

    return means


def _said(queue: Queue, job: JobId) -> str:
    """What a job says of others; empty: nothing that could be read."""
    try:
        context = evaluation.at(time.time())
        text = evaluate_attribute(ATTRIBUTE, ClassAd.from_wire(queue.ad(job)), context=context)
        if isinstance(text, str):
            parsed(text)
            return text
    except (EvaluationFailed, RefusedError):
        pass  # it is true of nobody
    return ""
