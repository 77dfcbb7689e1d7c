"""What the projector of job event logs remembers between frames: of live jobs only."""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.jobs.lower_names import lower_names
from kettle.userlog.job_ad_information import TrackedSubmission
from kettle.userlog.usage import Allocation
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.events import ClusterSubmitted, Event, Usage, decode, encode

_KEPT: Final = {
    name.lower(): name
    for name in (
        "UserLog",
        "Iwd",
        "RequestCpus",
        "RequestMemory",
        "RequestDisk",
        "SubmitEventNotes",
        "SubmitEventUserNotes",
        "SubmitEventNotesAttrs",
        "UserLogUseXML",
        "UserLogExecuteEventAttrs",
        "JobAdInformationAttrs",
        "DAGManNodesLog",
        "DAGManNodesMask",
    )
}


class Cluster(msgspec.Struct):
    """What the log needs of a submission."""

    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    live: int
    """How many of its jobs have not left the queue."""
    owner: str = ""
    """Whose files its logs are; empty: it was submitted when all were of one account."""
    options: str = ""
    """How logs were written when it was submitted: a log does not change its form on the way."""
    late: bool = False
    """Its jobs come little by little."""
    made: int = 0
    """So many of these have come."""
    items: int = 0
    """Of so many."""
    paused: bool = False
    closed: str = ""
    """Why no more come."""

    @classmethod
    def of(cls, event: ClusterSubmitted, options: str = "") -> "Cluster":
        """Keep only the attributes that log events show."""
        columns = [i for i, name in enumerate(event.columns) if name.lower() in _KEPT]
        spelled = lower_names(event.ad)
        return cls(
            ad={
                kept: _text(event.ad[spelled[name]], event.cluster)
                for name, kept in _KEPT.items()
                if name in spelled
            },
            columns=[_KEPT[event.columns[i].lower()] for i in columns],
            rows=[[_text(row[i], event.cluster) for i in columns] for row in event.rows] if columns else [],
            live=len(event.rows),
            owner=event.owner,
            options=options,
            late=event.late,
            items=len(event.rows),
        )

    @property
    def names(self) -> set[str]:
        """Of the attributes that its jobs have among them."""
        return {*self.ad, *self.columns}

    @property
    def completion(self) -> int:
        """The number in event 036: all jobs are made, its making is paused, or neither."""
        return 1 if self.made >= self.items else 2 if self.paused else 0

    def ad_of(self, proc: int) -> Mapping[str, Scalar]:
        """What is kept of the ad of one job."""
        if not self.columns:
            return self.ad
        return {**self.ad, **dict(zip(self.columns, self.rows[proc], strict=True))}


class Job(msgspec.Struct):
    """A job with an event of its own."""

    attempt: int = 0
    """0: none lives."""
    claim: str = ""
    slot: str = ""
    startd: str = ""
    started_at: float = 0.0
    """0: the executable of this attempt does not run (yet)."""
    disconnected: bool = False
    """Its machine does not answer, and the log says so."""
    waiting: list[msgspec.Raw] = []
    """
    Recorded while the attempt lives, written when it has ended. As in the log: their types may be superseded.
    """
    total: Usage = Usage()
    kept: bool = False
    """It stays in the queue after its end."""
    ended: bool = False
    """Whether the log has its end event, which is written once, no matter what happens to the job later."""

    def put_off(self, event: Event) -> None:
        """Keep an event until the attempt has ended."""
        self.waiting.append(msgspec.Raw(encode(event)))

    def put_off_so_far(self) -> list[Event]:
        """What was put off, in the order in which it happened."""
        return [decode(bytes(event)) for event in self.waiting]


class ProjectorState(msgspec.Struct):
    """Everything that a projector remembers."""

    frame: int = 0
    at: int = 0
    """When that was recorded, microseconds since the epoch; 0: an earlier version has not kept it."""
    clusters: dict[int, Cluster] = {}
    jobs: dict[str, Job] = {}
    """By `cluster.proc`."""
    claims: dict[str, Allocation] = {}
    told: dict[int, TrackedSubmission] = {}
    """By cluster, the attributes of the ads of jobs whose logs contain them."""
    since: int = 0
    """No lines are made for this frame and earlier ones."""
    told_until: int = 0
    """No lines are made for what was recorded up to then, microseconds since the epoch."""
    lines: int = 0
    """The number of lines that were made."""


def notes_of(ad: Mapping[str, Scalar]) -> list[str]:
    """
    The notes of a submission: of the submitter's programs, then his own; an empty one keeps the place of the first.
    """
    said = [ad.get("SubmitEventNotes"), ad.get("SubmitEventUserNotes")]
    notes = [note if isinstance(note, str) else "" for note in said]
    return notes if notes[1] else [note for note in notes if note]


def _text(value: Scalar, cluster: int) -> Scalar:
    return value.replace("$(ClusterId)", str(cluster)) if isinstance(value, str) else value
