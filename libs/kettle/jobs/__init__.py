"""
What a job's ad says, as a function of what was recorded of the job.

The queue, the history and the tools that explain a job all use this one fold, so that they cannot disagree.
"""

from kettle.jobs.ad import Status, apply, ended, exited
from kettle.jobs.measures import in_use
from kettle.jobs.submitted import fold_base, job_ad, job_ads
from kettle.jobs.trace import trace_meta, traceparent

__all__ = [
    "Status",
    "apply",
    "ended",
    "exited",
    "fold_base",
    "in_use",
    "job_ad",
    "job_ads",
    "trace_meta",
    "traceparent",
]
