"""
The projection `jobs`: live jobs, history, usage, queue depth and claims of all queues.

One for all of them, because all need the ads of live jobs: a frame is decoded and folded once and committed once.
"""

from kettle.projections.jobs.prefilter import HISTORY, QUEUE, Searchable, prefilter
from kettle.projections.jobs.projection import Jobs
from kettle.projections.jobs.queued_ads import QueuedAds

__all__ = ["HISTORY", "QUEUE", "Jobs", "QueuedAds", "Searchable", "prefilter"]
