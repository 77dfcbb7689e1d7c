"""
From recorded events to the mails that jobs want about themselves (`notification` of a submit file).  Pure.

Only jobs that want mail are remembered, from their submission until they have left the queue.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple, cast

import msgspec

from kettle.classad import unparse
from kettle.jobs import apply, ended, job_ads
from kettle.jobs.ad import LATER
from kettle.transfer.file_lists import items
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.codes import HoldCode
from kettle_wire.event_expansion import expanded
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    FactoryClosed,
    JobCompleted,
    JobEvent,
    JobHeld,
    JobStarted,
    decode,
    encode,
)
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

ALWAYS, COMPLETE, ERROR, START = 1, 2, 3, 4
"""JobNotification."""
_USED: Final = (
    ("RemoteWallClockTime", "seconds on machines, all attempts together"),
    ("CumulativeRemoteUserCpu", "seconds of user CPU time"),
    ("CumulativeRemoteSysCpu", "seconds of system CPU time"),
    ("MemoryUsage", "MiB of memory at most"),
    ("NumJobStarts", "starts"),
)
_TIMES: Final = (("QDate", "submitted"), ("JobCurrentStartDate", "started"), ("CompletionDate", "ended"))

_KEPT: Final = frozenset({
    *(name for name, _ in (*_TIMES, *_USED)),
    "Args", "Arguments", "Cmd", "EmailAttributes", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "Iwd",
    "JobNotification", "NotifyUser", "Owner", "RemoteHost",
    "CurrentHosts", "JobStatus", "LastSuspensionTime", "RemoveReason", "ShadowBday",
})  # fmt: skip
"""
What a mail says without being asked, and what `apply` looks at to get there; an ad has a hundred attributes more.
"""


class Mail(NamedTuple):
    """`to` is as the submitter wrote it, or the name of the job's owner."""

    to: str
    subject: str
    body: str
    owner: str
    """Whose job it is about."""


class Kept(msgspec.Struct):
    """A submission of which a job wants mail."""

    at: int
    event: msgspec.Raw
    """As in the log: its type may be superseded."""
    live: int


class State(msgspec.Struct):
    """Everything that is remembered between frames."""

    frame: int = 0
    at: int = 0
    """When that was recorded, microseconds since the epoch; 0: an earlier version has not kept it."""
    told_until: int = 0
    """No mail is made for what was recorded up to then."""
    clusters: dict[int, Kept] = {}
    jobs: dict[str, Ad] = {}
    """What is needed of the ads of those to which something has happened, by `cluster.proc`."""


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(State)


class MailProjector:
    """Fed the frames of one schedd's shard in order, it says which mails are to be sent."""

    def __init__(self, schedd: str, *, snapshot: bytes = b"", told_until: int = 0) -> None:
        """`told_until`: no mail is made for what was recorded up to then; a snapshot knows its own."""
        self._schedd = schedd
        self._state = _decoder.decode(snapshot) if snapshot else State(told_until=told_until)
        self._ads: dict[int, Callable[[int, str], Ad]] = {}

    @property
    def frame(self) -> int:
        """The last frame that was fed."""
        return self._state.frame

    @property
    def at(self) -> int:
        """When that was recorded, microseconds since the epoch; 0: nobody knows."""
        return self._state.at

    def snapshot(self) -> bytes:
        """Everything needed to go on after `frame`."""
        return _encoder.encode(self._state)

    def feed(self, frame: Frame) -> list[Mail]:
        """The mails about this frame, in order; none for a frame that was fed before."""
        if frame.number <= self._state.frame:
            return []
        mails: list[Mail] = []
        for entry in expanded(frame).entries:
            kind, _, name = entry.stream.partition("/")
            if kind == "cluster":
                self._submitted(decode(entry.data), frame.at)
            elif kind == "factory":
                self._cut(decode(entry.data))
            elif kind == "job" and (job := JobId.parse(name)).cluster in self._state.clusters:
                mails.extend(self._happened(job, decode(entry.data), frame.at))
        self._state.frame, self._state.at = frame.number, frame.at
        return [] if 0 < frame.at <= self._state.told_until else mails

    def _submitted(self, event: Event, at: int) -> None:
        if not isinstance(event, ClusterSubmitted):
            return
        own = any(name.lower() == "jobnotification" for name in event.columns)
        if own or any(name.lower() == "jobnotification" and value for name, value in event.ad.items()):
            kept = Kept(at=at, event=msgspec.Raw(encode(event)), live=len(event.rows))
            self._state.clusters[event.cluster] = kept

    def _cut(self, event: Event) -> None:
        if isinstance(event, FactoryClosed) and event.cluster in self._state.clusters:
            self._fewer(event.cluster, event.count)

    def _fewer(self, cluster: int, count: int) -> None:
        self._state.clusters[cluster].live -= count
        if not self._state.clusters[cluster].live:
            del self._state.clusters[cluster]
            self._ads.pop(cluster, None)

    def _happened(self, job: JobId, event: Event, at: int) -> Iterator[Mail]:
        state, name = self._state, str(job)
        ad = state.jobs.get(name)
        if ad is None:
            ad = state.jobs[name] = self._made(job.cluster)(job.proc, self._schedd)
        apply(ad, cast("JobEvent", event), at)
        if happened := _told(ad, event):
            yield Mail(
                to=_text(ad, "NotifyUser") or _text(ad, "Owner"),
                subject=f"[Kettle] Job {name} {happened}",
                body="\n".join(_body(ad, f"Job {name} on {self._schedd} {happened}.")),
                owner=_text(ad, "Owner"),
            )
        if ended(ad):
            del state.jobs[name]
            self._fewer(job.cluster, 1)
        else:
            state.jobs[name] = _needed(ad)

    def _made(self, cluster: int) -> Callable[[int, str], Ad]:
        made = self._ads.get(cluster)
        if made is None:
            kept = self._state.clusters[cluster]
            submitted = decode(bytes(kept.event))
            assert isinstance(submitted, ClusterSubmitted)
            made = self._ads[cluster] = job_ads(submitted, kept.at)
        return made


def _needed(ad: Ad) -> Ad:
    """The attributes that later mails of the job contain, and those from which they are computed."""
    asked = {name.lower() for name in items(_text(ad, "EmailAttributes"))}
    kept = (_KEPT | LATER | {"RequestCpus"}) if asked else _KEPT  # some are worked out from others
    return {name: value for name, value in ad.items() if name in kept or name.lower() in asked}


def _told(ad: Ad, event: Event) -> str:
    """What a mail is to say has happened; empty: there is to be none."""
    wish = ad.get("JobNotification")
    match event:
        case JobStarted() if wish == START:
            return f"has started on {ad.get('RemoteHost', 'a machine')}"
        case JobHeld(code=code, reason=reason) if wish in {ALWAYS, ERROR} and code != HoldCode.UserRequest:
            return f"is held: {reason}"
        case JobCompleted(exit=ExitRecord(signal=int(signal))) if wish in {ALWAYS, COMPLETE, ERROR}:
            return f"was killed by signal {signal}"
        case JobCompleted(exit=ExitRecord(code=code)) if wish in {ALWAYS, COMPLETE} or (
            wish == ERROR and code
        ):
            return f"has ended with exit code {code}"
        case _:
            return ""


def _body(ad: Ad, happened: str) -> Iterator[str]:
    yield happened
    yield ""
    yield f"    {_text(ad, 'Cmd')} {_text(ad, 'Arguments') or _text(ad, 'Args')}".rstrip()
    yield f"    in {_text(ad, 'Iwd')}"
    yield ""
    for name, what in _TIMES:
        at = ad.get(name)
        if isinstance(at, int) and at > 0:
            yield f"{what}: {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    for name, what in _USED:
        value = ad.get(name)
        if isinstance(value, int | float) and value:
            yield f"{what}: {value:.10g}"
    if code := ad.get("HoldReasonCode"):
        yield f"hold code: {code}, subcode {ad.get('HoldReasonSubCode', 0)}"
    named = {name.lower(): name for name in ad}
    for wanted in items(_text(ad, "EmailAttributes")):
        name = named.get(wanted.lower(), "")
        yield f"{wanted} = {_shown(ad[name]) if name else 'undefined'}"
    yield ""


def _shown(value: Scalar) -> str:
    return value.expr if isinstance(value, Expr) else unparse(value)


def _text(ad: Ad, name: str) -> str:
    value = ad.get(name)
    return value if isinstance(value, str) else ""
