"""What a fold has changed, as the columns that statements take."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from kettle.eventsourcing.projection import Decoded
from kettle.jobs.attempts import US
from kettle.jobs.history import MINUTE, Changes, Happened
from kettle.projections.jobs.held_together import HeldTogether, moved
from kettle.projections.jobs.searchable_attributes import COLUMNS, Common, is_like_others, searchable
from kettle.projections.stored_projection import instant, storable
from kettle_wire import events
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.codes import JobStatus
from kettle_wire.events import ClaimEnded, ClaimGranted

Statement: TypeAlias = tuple[str, list[list[object]]]
"""The name of a statement and its columns, after the shard."""

HISTORY: Final = (
    "cluster", "proc", "owner", "status", "submitted_at", "left_at", "frame", *COLUMNS.values(), "search", "ad",
)  # fmt: skip
"""The columns of the table `history`, the shard left out, in the order of the statement `depart`."""

ATTEMPT: Final = (
    "cluster", "proc", "attempt", "owner", "acct_group", "project", "machine", "slot", "begun_at", "ended_at", "until_at",
    "wall", "slot_time", "cpu", "good", "uncharged", "completed", "code", "frame",
)  # fmt: skip
"""The columns of the table `attempt`, in the order of the statement `ended`."""

_YEAR_10000: Final = 253_402_300_800

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Happened).decode


def of_jobs(changes: Changes) -> list[Statement]:
    """What became of jobs; statements that have nothing to do are left out. `history` has the rest."""
    left = [one.job for one in changes.departed if one.job not in changes.fresh]
    gone = {job.cluster: len(changes.left[job.cluster].event.rows) for job in left} | changes.cut
    spent = ((o, s.jobs_completed, s.attempts, s.wall, s.slot_time, s.cpu) for o, s in changes.spent.items())
    return _wanted(
        ("submit", _submissions(changes)),
        ("make", _made(changes)),
        ("happen", columns(_live(changes))),
        ("leave", columns((job.cluster, job.proc) for job in left)),
        ("cut", columns(changes.cut.items())),
        ("forget", columns(gone.items())),
        ("spend", columns(spent)),
        ("deepen", columns(_depths(changes))),
    )


def history(changes: Changes) -> Iterator[tuple[object, ...]]:
    """Of each job that has left the queue the columns `HISTORY` of its row."""
    known: dict[int, Common] = {}
    together = Counter(one.job.cluster for one in changes.departed)
    for one in changes.departed:
        common = known.get(one.job.cluster)
        if common is None and together[one.job.cluster] > 1 and is_like_others(one.ad):
            common = known[one.job.cluster] = Common(one.ad, changes.left[one.job.cluster].event.columns)
        numbers, search = searchable(one.ad) if common is None else common.searchable(one.ad)
        yield (
            one.job.cluster,
            one.job.proc,
            one.owner,
            one.status,
            instant(one.submitted_at),
            instant(one.left_at),
            one.frame,
            *numbers,
            search,
            _encode(one.ad),
        )


def attempts(changes: Changes) -> Iterator[tuple[object, ...]]:
    """Of each attempt that has ended the columns `ATTEMPT` of its row."""
    for one in changes.attempts:
        names = map(storable, (one.owner, one.group, one.project, one.machine, one.slot))
        yield (
            one.job.cluster,
            one.job.proc,
            one.number,
            *names,
            instant(one.begun),
            instant(one.ended),
            instant(one.until),
            one.wall,
            one.slot_time,
            one.cpu,
            one.good,
            one.uncharged,
            one.completed,
            one.code,
            one.frame,
        )


def of_claims(frames: Iterable[Decoded]) -> list[Statement]:
    """Claims that were granted or ended."""
    granted: list[tuple[object, ...]] = []
    ended: list[tuple[object, ...]] = []
    for frame, decoded in frames:
        for event in decoded:
            match event:
                case ClaimGranted():
                    names = map(storable, (event.claim, event.startd, event.slot, event.submitter))
                    granted.append((*names, event.autocluster, event.lease, instant(frame.at)))
                case ClaimEnded():
                    ended.append((storable(event.claim), instant(frame.at), storable(event.reason)))
                case _:
                    pass
    return _wanted(("grant", columns(granted)), ("end", columns(ended)))


def of_all(held: HeldTogether) -> list[object]:
    """What is the same in the rows of jobs that were held or released together: of the statement `become`."""
    happened = [Happened(held.frame.at, held.data)]
    reason = None if held.reason is None else storable(held.reason)
    return [_packed(happened), int(held.status), _seconds(held.frame.at // US), reason]


def depths_of_all(held: HeldTogether, counts: Iterable[tuple[str, int, int]]) -> Iterator[tuple[object, ...]]:
    """The depths of their owners; `counts`: of each owner and status that they had, how many they were."""
    minute = instant(held.frame.at // MINUTE * MINUTE)
    of_owner: dict[str, list[tuple[int, int]]] = {}
    for owner, status, count in counts:
        of_owner.setdefault(owner, []).append((status, count))
    for owner, of_status in of_owner.items():
        d = moved(of_status, held.status)
        yield owner, minute, True, d.idle, d.running, d.removed, d.held


def columns(rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    """Rows as the arrays that one statement takes; nothing for no rows."""
    return [list(column) for column in zip(*rows, strict=True)]


def unpacked(packed: bytes) -> list[Happened]:
    """
    What happened to a job, as it was stored: each with its length, so that more can be added without reading it.
    """
    found: list[Happened] = []
    at = 0
    while at < len(packed):
        end = at + 4 + int.from_bytes(packed[at : at + 4], "big")
        found.append(_decode(packed[at + 4 : end]))
        at = end
    return found


def _packed(happened: Iterable[Happened]) -> bytes:
    return b"".join(len(data).to_bytes(4, "big") + data for data in map(_encode, happened))


def _wanted(*statements: Statement) -> list[Statement]:
    return [(name, values) for name, values in statements if values]


def _submissions(changes: Changes) -> list[list[object]]:
    """New clusters, and those of their jobs that have left already."""
    clusters = columns(
        (
            number,
            one.event.owner,
            instant(one.at),
            0 if one.event.late else len(one.event.rows),
            events.encode(one.event),
        )
        for number, one in changes.submitted.items()
    )
    left = [job for job in changes.fresh if job.cluster in changes.submitted]
    return [*clusters, [job.cluster for job in left], [job.proc for job in left]] if clusters else []


def _made(changes: Changes) -> list[list[object]]:
    """Jobs that have come into the queue since their submission, and those of them that have left already."""
    made = columns((cluster, procs.start, procs.stop) for cluster, procs in changes.made.items())
    left = [job for job in changes.fresh if job.cluster in changes.made]
    return [*made, [job.cluster for job in left], [job.proc for job in left]] if made else []


def _live(changes: Changes) -> Iterator[tuple[object, ...]]:
    for job, happened in changes.happened.items():
        ad = changes.present[job]
        runs = bool(ad["CurrentHosts"])
        yield (
            job.cluster,
            job.proc,
            _packed(happened),
            ad["JobStatus"],
            _seconds(ad["EnteredCurrentStatus"]),
            ad["NumShadowStarts"],
            _text(ad.get("RemoteHost")),
            _text(ad.get("PublicClaimId")),
            _seconds(ad["JobCurrentStartDate"]) if runs else None,
            _executing(ad) if runs else None,
            _text(ad["HoldReason"]) if ad["JobStatus"] == JobStatus.HELD else None,
        )


def _text(value: Scalar | None) -> str | None:
    return storable(value) if isinstance(value, str) else None


def _seconds(value: Scalar | None) -> object:
    """NULL also for a time that no calendar has: machines report what they like."""
    return instant(value * US) if isinstance(value, int) and 0 <= value < _YEAR_10000 else None


def _executing(ad: Ad) -> object:
    """NULL also as long as the ad describes an earlier attempt."""
    return _seconds(ad.get("JobCurrentStartExecutingDate")) if "JobPid" in ad else None


def _depths(changes: Changes) -> Sequence[tuple[object, ...]]:
    last = dict(changes.depth.keys())  # of the minutes of an owner the one that was recorded last
    return [
        (owner, instant(minute * MINUTE), last[owner] == minute, d.idle, d.running, d.removed, d.held)
        for (owner, minute), d in changes.depth.items()
    ]
