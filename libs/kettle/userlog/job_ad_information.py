"""
The ads of the jobs whose logs contain attributes, as they are when an event is written.

Pure.  Only jobs that ask for it have one: an ad has a hundred attributes, and a log of a million jobs needs none of
them.
"""

from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from kettle.jobs import apply, job_ads
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.events import ClusterSubmitted, JobEvent, decode, encode
from kettle_wire.jobs import JobId


class TrackedSubmission(msgspec.Struct):
    """A submission, and the state of its jobs."""

    at: int
    event: msgspec.Raw
    """As in the log: its type may be superseded."""
    jobs: dict[int, Ad] = {}
    """Of those to which something has happened, by number."""


class JobAds:
    """The ads of some jobs; `told` is its memory, and belongs to the caller."""

    def __init__(self, told: dict[int, TrackedSubmission], schedd: str) -> None:
        self._told = told
        self._schedd = schedd
        self._made: dict[int, Callable[[int, str], Ad]] = {}

    def submitted(self, event: ClusterSubmitted, at: int) -> None:
        """Remember a submission, of `at` microseconds."""
        self._told[event.cluster] = TrackedSubmission(at=at, event=msgspec.Raw(encode(event)))

    def happened(self, job: JobId, event: JobEvent, at: int) -> None:
        """Take an event of a job, of `at` microseconds."""
        told = self._told.get(job.cluster)
        if told is not None:
            ad = told.jobs.get(job.proc)
            if ad is None:
                ad = told.jobs[job.proc] = self._new(job, told)
            apply(ad, event, at)

    def gone(self, job: JobId) -> None:
        """Forget a job."""
        if job.cluster in self._told:
            self._told[job.cluster].jobs.pop(job.proc, None)

    def over(self, cluster: int) -> None:
        """Forget a submission."""
        self._told.pop(cluster, None)
        self._made.pop(cluster, None)

    def said(self, job: JobId, names: Sequence[str]) -> Ad:
        """
        What these attributes come to; those that come to nothing, or to no number and no text, are left out.
        """
        told = self._told.get(job.cluster)
        if told is None:
            return {}
        ad = told.jobs.get(job.proc)
        return _values(self._new(job, told) if ad is None else ad, names)

    def _new(self, job: JobId, told: TrackedSubmission) -> Ad:
        made = self._made.get(job.cluster)
        if made is None:
            submitted = cast("ClusterSubmitted", decode(bytes(told.event)))
            made = self._made[job.cluster] = job_ads(submitted, told.at)
        return made(job.proc, self._schedd)


def _values(ad: Ad, names: Sequence[str]) -> Ad:
    from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute

    inner = ClassAd.from_wire(ad)
    spelled = {name.lower(): name for name in ad}
    values: Ad = {}
    for name in names:
        if (known := spelled.get(name.lower())) is None:
            continue
        try:
            value = evaluate_attribute(known, inner)
        except EvaluationFailed:
            continue
        if isinstance(value, bool | int | float | str):
            values[known] = cast("Scalar", value)
    return values
