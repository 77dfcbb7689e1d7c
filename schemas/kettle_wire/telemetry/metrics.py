"""
Every metric of every service, declared in the modules beside this one. A service measures nothing that is not declared there.

Names of people and of jobs are in no attribute, except in `kettle.schedd.submitter.jobs`, which a site has to ask for.
"""

from typing import Final

from kettle_wire.telemetry import (
    file_metrics,
    gateway_metrics,
    pool_metrics,
    process_metrics,
    queue_metrics,
    session_metrics,
    worker_pool_metrics,
)
from kettle_wire.telemetry.declaration import Metric

METRICS: Final = (
    *process_metrics.METRICS,
    *queue_metrics.METRICS,
    *file_metrics.METRICS,
    *pool_metrics.METRICS,
    *gateway_metrics.METRICS,
    *session_metrics.METRICS,
    *worker_pool_metrics.METRICS,
)
"""All of them, in the order of those modules."""


def of_service(role: str) -> tuple[Metric, ...]:
    """What a service measures."""
    return tuple(metric for metric in METRICS if role in metric.services)
