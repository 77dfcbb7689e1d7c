"""
What a job's ad says, as a function of what was recorded of the job.

The queue, the history and the tools that explain a job all use this one fold, so that they cannot disagree.
Each name is loaded when it is wanted.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kettle.jobs.ad import apply, ended, exited
    from kettle.jobs.submitted_ad import fold_base, job_ad, job_ads
    from kettle.jobs.trace import trace_meta, traceparent
    from kettle.jobs.usage_attributes import in_use

__all__ = [
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

_AT: Final = {
    "apply": "kettle.jobs.ad",
    "ended": "kettle.jobs.ad",
    "exited": "kettle.jobs.ad",
    "fold_base": "kettle.jobs.submitted_ad",
    "in_use": "kettle.jobs.usage_attributes",
    "job_ad": "kettle.jobs.submitted_ad",
    "job_ads": "kettle.jobs.submitted_ad",
    "trace_meta": "kettle.jobs.trace",
    "traceparent": "kettle.jobs.trace",
}


def __getattr__(name: str) -> Any:
    """Each name is loaded when somebody wants it."""
    if name not in _AT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_AT[name]), name)
    return value
