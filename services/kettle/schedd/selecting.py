"""Which jobs of a queue somebody means."""

import time
from collections.abc import Callable
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, ClassAdError, parse
from kettle.schedd.domain import policy
from kettle.schedd.domain.queue import Queue
from kettle.schedd.domain.views import View
from kettle.schedd.turns import Turn
from kettle.wire.ads import Ad
from kettle.wire.commands.schedd import Select
from kettle.wire.jobs import JobId

LOOK: Final = 32
"""Jobs after which one looks whether it is somebody else's turn."""


async def selected_jobs(queue: Queue, select: Select) -> list[JobId]:
    """Jobs of a selection, in their order; whoever asks about very many lets the others have a word in between."""
    meets = condition(select.constraint)
    jobs = list(queue.select(jobs=select.jobs, clusters=select.clusters, owners=select.owners))
    if meets is None:
        return jobs
    found: list[JobId] = []
    view, turn = View(queue), Turn()
    for at, job in enumerate(jobs):
        if job in queue.jobs and meets(view.ad(job)):
            found.append(job)
        if not at % LOOK:
            await turn.pause()
    return found


def condition(text: str) -> Callable[[Ad], bool] | None:
    """What a job's ad has to meet; None: nothing. Raises RefusedError for what cannot be read."""
    if not text:
        return None
    try:
        expression = parse(text)
    except ClassAdError as error:
        raise RefusedError("malformed", f"the constraint '{text}' cannot be read: {error}") from error
    context = policy.at(time.time())
    return lambda ad: policy.holds(expression, ClassAd.from_wire(ad), context)
