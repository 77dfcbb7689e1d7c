"""
What becomes of jobs: those in the queue, the ads of those that have left it, what each owner has used and how deep
each owner's queue was.

Pure.  A fold over the frames of one schedd's shard that needs to know only of jobs that are still in the queue, so
that it can go on from what was stored of them.  Sums are kept in whole microseconds: they come out the same however
the frames are grouped.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Final, cast

import msgspec

from kettle.jobs.ad import apply, ended, over
from kettle.jobs.attempts import US, EndedAttempt, Run, attempt_of, noted
from kettle.jobs.submitted_ad import job_ads
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    FactoryClosed,
    FactoryMaterialized,
    JobCompleted,
    JobEvent,
    JobVacated,
    decode,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

MINUTE: Final = 60 * US


class Happened(msgspec.Struct, frozen=True, array_like=True):
    """One event of a job, as recorded."""

    at: int
    """Microseconds since the epoch."""
    data: bytes


class Submission(msgspec.Struct, frozen=True, dict=True):
    """A cluster, as recorded."""

    at: int
    event: ClusterSubmitted

    @cached_property
    def ads(self) -> Callable[[int, str], Ad]:
        """The ads of its jobs as they were submitted, by number in the cluster and name of the schedd."""
        return job_ads(self.event, self.at)


class Departed(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has left the queue."""

    job: JobId
    owner: str
    status: int
    submitted_at: int
    """Microseconds since the epoch."""
    left_at: int
    frame: int
    """That in which it left."""
    ad: Ad


class OwnerTotals(msgspec.Struct):
    """What an owner's attempts have used; times in microseconds."""

    jobs_completed: int = 0
    attempts: int = 0
    wall: int = 0
    slot_time: int = 0
    cpu: int = 0

    def add(self, attempt: EndedAttempt) -> None:
        """Add what one more attempt has used."""
        self.jobs_completed += attempt.completed
        self.attempts += 1
        self.wall += attempt.wall
        self.slot_time += attempt.slot_time
        self.cpu += attempt.cpu


class QueueDepth(msgspec.Struct):
    """Jobs of one owner in the queue, or by how many these have changed."""

    idle: int = 0
    running: int = 0
    removed: int = 0
    """To be removed when their attempt has ended."""
    held: int = 0

    def move(self, ad: Ad, count: int) -> None:
        """
        Add to the jobs of the status of this one; one that only stays in the queue after its end is none of them.
        """
        if over(ad):
            return
        match status := cast("int", ad["JobStatus"]):
            case JobStatus.IDLE:
                self.idle += count
            case JobStatus.RUNNING | JobStatus.SUSPENDED:
                self.running += count
            case JobStatus.REMOVED:
                self.removed += count
            case JobStatus.HELD:
                self.held += count
            case _:
                raise ValueError(f"no job in the queue has status {status}")


class Changes(msgspec.Struct):
    """What some frames change."""

    submitted: dict[int, Submission] = {}
    """New clusters of which a job is still in the queue."""
    present: dict[JobId, Ad] = {}
    """How jobs that stay in the queue are now; the ads go on changing with the fold."""
    happened: dict[JobId, list[Happened]] = {}
    """What is new of jobs that stay in the queue."""
    departed: list[Departed] = []
    left: dict[int, Submission] = {}
    """The clusters of which they were."""
    made: dict[int, range] = {}
    """By cluster, the jobs that have come into the queue since the submission (late materialisation)."""
    cut: dict[int, int] = {}
    """Clusters of which no more jobs will come, and of how many jobs they were."""
    fresh: set[JobId] = set()
    """Those that have left and came in the same frames: nothing was stored of them."""
    spent: dict[str, OwnerTotals] = {}
    """By owner."""
    attempts: list[EndedAttempt] = []
    """Those that ended, in the order of recording."""
    depth: dict[tuple[str, int], QueueDepth] = {}
    """
    By owner and minute since the epoch: all changes up to then, of these frames; in the order of recording.
    """


class UnknownJobError(Exception):
    """
    An event of a job whose submission is not recorded: the log is broken, or this fold did not begin at its start.
    """


def touched(frames: Iterable[Frame]) -> dict[str, JobId]:
    """The jobs that frames speak of, by stream."""
    names = {entry.stream for frame in frames for entry in frame.entries}
    return {name: JobId.parse(name.removeprefix("job/")) for name in names if name.startswith("job/")}


class JobHistory:
    """
    The fold over frames of one shard.

    `clusters` and `jobs`: what is stored of the clusters and jobs that the frames speak of and that are in the queue.
    A job that is not among them, of a cluster whose submission was not fed, has left. `present`: ads of some jobs in the
    queue as an earlier fold left them, which then need not be among `jobs`, and `runs`, which of them run; both are
    taken over.
    """

    def __init__(
        self,
        schedd: str,
        clusters: Mapping[int, Submission] | None = None,
        jobs: Mapping[JobId, Sequence[Happened]] | None = None,
        present: dict[JobId, Ad] | None = None,
        runs: dict[JobId, Run] | None = None,
    ) -> None:
        self._schedd = schedd
        self._clusters = dict(clusters or {})
        self._live: dict[int, int] = {}
        self._made: dict[int, range] = {}
        """Jobs that were seen to come into the queue after the submission."""
        self._ads: dict[JobId, Ad] = {} if present is None else present
        self._runs: dict[JobId, Run] = {} if runs is None else runs
        self._ids: dict[str, JobId] = {}
        self._stored = dict(jobs or {})
        self._depth: dict[str, QueueDepth] = {}
        self.changes = Changes()

    @property
    def present(self) -> dict[JobId, Ad]:
        """The ads of those jobs in the queue that were spoken of; the ads go on changing with the fold."""
        return self._ads

    @property
    def runs(self) -> dict[JobId, Run]:
        """The attempts of those of them that run."""
        return self._runs

    def apply_event(self) -> Changes:
        """The changes since the last time."""
        changes, self.changes, self._depth = self.changes, Changes(), {}
        return changes

    def feed(self, frame: Frame, decoded: Sequence[Event]) -> None:
        """Fold one frame; `decoded` are its events. Raises UnknownJobError."""
        moved: set[str] = set()
        for entry, event in zip(frame.entries, decoded, strict=True):
            match event:
                case ClusterSubmitted():
                    submission = Submission(frame.at, event)
                    self._clusters[event.cluster] = submission
                    self._live[event.cluster] = len(event.rows)
                    self.changes.submitted[event.cluster] = submission
                    self._depth.setdefault(event.owner, QueueDepth()).idle += (
                        0 if event.late else len(event.rows)
                    )
                    moved.add(event.owner)
                case FactoryMaterialized(owner=owner, count=count):
                    self._materialized(event)
                    self._depth.setdefault(owner, QueueDepth()).idle += count
                    moved.add(owner)
                case FactoryClosed(cluster=cluster, first=first, count=count):
                    self.changes.cut[cluster] = first + count
                    self._fewer(cluster, count)
                case _ if entry.stream.startswith("job/"):
                    moved.add(self._job(frame, entry, cast("JobEvent", event)))
                case _:
                    pass
        minute = frame.at // MINUTE
        for owner in moved:
            key = owner, minute
            # To the end: what was recorded last counts, whatever the clock said.
            self.changes.depth.pop(key, None)
            self.changes.depth[key] = copy(self._depth[owner])

    def _materialized(self, event: FactoryMaterialized) -> None:
        """They are made in their order, so what is made in some frames is one range."""
        for made in (self._made, self.changes.made):
            first = made[event.cluster].start if event.cluster in made else event.first
            made[event.cluster] = range(first, event.first + event.count)

    def _job(self, frame: Frame, entry: Entry, event: JobEvent) -> str:
        """Apply an event of a job; its owner."""
        job = self._ids.get(entry.stream)
        if job is None:
            job = self._ids[entry.stream] = JobId.parse(entry.stream.removeprefix("job/"))
        ad = self._ads.get(job)
        if ad is None:
            ad = self._ads[job] = self._begun(job)
        owner = cast("str", ad["Owner"])
        depth = self._depth.get(owner)
        if depth is None:
            depth = self._depth[owner] = QueueDepth()
        depth.move(ad, -1)
        apply(ad, event, frame.at)
        noted(self._runs, job, event, frame.at)
        if isinstance(event, JobCompleted | JobVacated):
            attempt = attempt_of(job, ad, self._runs.pop(job, None), event, frame)
            self.changes.attempts.append(attempt)
            self.changes.spent.setdefault(owner, OwnerTotals()).add(attempt)
        if not ended(ad):
            depth.move(ad, 1)
            self.changes.happened.setdefault(job, []).append(Happened(frame.at, entry.data))
            self.changes.present[job] = ad
            return owner
        self.changes.happened.pop(job, None)
        self.changes.present.pop(job, None)
        submission = self._clusters[job.cluster]
        self.changes.departed.append(
            Departed(
                job=job,
                owner=owner,
                status=int(cast("int", ad["JobStatus"])),
                submitted_at=submission.at,
                left_at=frame.at,
                frame=frame.number,
                ad=ad,
            )
        )
        self.changes.left[job.cluster] = submission
        if job.proc in self.changes.made.get(job.cluster, ()) or (
            job.cluster in self.changes.submitted and not submission.event.late
        ):
            self.changes.fresh.add(job)
        self._forget(job, entry.stream)
        return owner

    def _begun(self, job: JobId) -> Ad:
        """The ad of a job as what is stored of it says."""
        submission = self._clusters.get(job.cluster)
        if submission is None or not self._came(job, submission):
            raise UnknownJobError(
                f"{self._schedd}: an event of job {job}, which was never submitted or has left"
            )
        ad = submission.ads(job.proc, self._schedd)
        for happened in self._stored.pop(job, ()):
            event = cast("JobEvent", decode(happened.data))
            apply(ad, event, happened.at)
            noted(self._runs, job, event, happened.at)
        return ad

    def _came(self, job: JobId, submission: Submission) -> bool:
        """Whether the job is in the queue, or was."""
        if job in self._stored or job.proc in self._made.get(job.cluster, ()):
            return True
        seen = job.cluster in self._live and not submission.event.late
        return seen and job.proc < len(submission.event.rows)

    def _forget(self, job: JobId, stream: str) -> None:
        """A cluster whose beginning was not seen here is forgotten by whoever stored it."""
        del self._ads[job], self._ids[stream]
        self._runs.pop(job, None)
        self._fewer(job.cluster, 1)

    def _fewer(self, cluster: int, count: int) -> None:
        if cluster in self._live:
            self._live[cluster] -= count
            if not self._live[cluster]:
                del self._live[cluster], self._clusters[cluster]
                self._made.pop(cluster, None)
                self.changes.submitted.pop(cluster, None)
