"""
Filters that ask only for what all jobs of a cluster have in common: they are decided once for each cluster, not once for each job.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.jobs.ad import LATER
from kettle.jobs.history import Submission
from kettle.jobs.submitted_ad import job_ads
from kettle_services.gateway.rest.filters import AdFilter
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_wire.ads.types import Expr

MOST_CLUSTERS: Final = 1024
"""With more clusters their submissions are too much to be read before the first job is."""
_OF_EACH: Final = frozenset(name.lower() for name in (*LATER, "ProcId", "GlobalJobId"))
"""Attributes that two jobs of a cluster may have different values of, no matter how they were submitted."""


class Narrowing(msgspec.Struct, frozen=True):
    """
    The clusters of which a filter may be true; of jobs of others it is false, unless somebody or the job itself has set an attribute.
    """

    shards: list[str]
    clusters: list[int]


def asks_for_common(wanted: AdFilter) -> bool:
    """Whether a filter can be decided for a cluster at all."""
    return wanted.asked is not None and not wanted.asked & _OF_EACH


def narrowed(
    wanted: AdFilter, viewer: Viewer, submissions: Mapping[tuple[str, int], Submission]
) -> Narrowing:
    """Of clusters, by shard and number, those of which a filter may be true."""
    left = [key for key, submission in submissions.items() if _may_hold(wanted, viewer, submission)]
    return Narrowing([shard for shard, _ in left], [cluster for _, cluster in left])


def _may_hold(wanted: AdFilter, viewer: Viewer, submission: Submission) -> bool:
    event, asked = submission.event, wanted.asked
    assert asked is not None, "it asks for common attributes"
    if any(name.lower() in asked for name in event.columns):
        return True
    ad = job_ads(event, submission.at, only=asked)(0, "")
    if any(isinstance(value, Expr) for value in ad.values()):
        return True  # which may ask for anything
    return viewer.finds(wanted, ad, event.owner)
