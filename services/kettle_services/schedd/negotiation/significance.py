"""What a negotiator says of its machines: which attributes of jobs they look at."""

import logging
from collections.abc import Sequence
from typing import Final

from kettle.jobs.significant_attributes import MOST
from kettle_services.schedd.domain.negotiation.reclustering import mark_significant
from kettle_services.schedd.domain.queue.fold import Queue

_log: Final = logging.getLogger(__name__)


def learn_significant(queue: Queue, names: Sequence[str]) -> bool:
    """Have these attributes shown from now on, and jobs told apart by them; whether that is new."""
    if len(queue.significant) >= 2 * MOST:  # of several pools: more would only divide jobs that are alike
        return False
    new = mark_significant(queue, names[:MOST])
    if new:
        _log.info("attributes became significant", extra={"attributes": ", ".join(new)})
    return bool(new)
