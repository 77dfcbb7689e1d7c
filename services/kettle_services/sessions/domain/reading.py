"""What the events of a schedd's shard say of sessions."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.codes import HoldCode
from kettle_wire.event_expansion import each
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobVacated,
    decode,
)
from kettle_wire.events.interactive import (
    InteractiveEvent,
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    MemberChange,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId
from kettle_wire.session_attributes import BATCH, ID

SITE: Final = "SiteName"
_SITE: Final = f"MachineAttr{SITE}0"
_IN_THE_LOG: Final = ID.encode()


class _Known(msgspec.Struct):
    """A cluster of a session."""

    session: str
    first: int
    """The number of the member that is its first job."""
    removed: dict[int, tuple[str, str]] = {}
    """By proc why and by whom; those whose attempt still lives are gone when it has ended."""
    held: set[int] = set()
    """Those that are held, also while their attempt still lives."""
    living: set[int] = set()
    """Those that have an attempt."""
    left: int = 0
    """Jobs that are not gone."""


class Reader:
    """
    Reads frames in their order. `sessions` are those that are not over, as everything that was read so far has left them.
    """

    def __init__(self, sessions: Mapping[str, InteractiveSession]) -> None:
        self._sessions = sessions
        self._clusters: dict[int, _Known] = {}
        for session in sessions.values():
            for number, member in session.members.items():
                if not member.job:
                    continue
                job = JobId.parse(member.job)
                known = self._clusters.setdefault(job.cluster, _Known(session.id, number - job.proc))
                known.left += 1
                if member.status in {"matched", "running"}:
                    known.living.add(job.proc)
                if member.status == "held":
                    known.held.add(job.proc)
                if member.status == "removing":
                    known.living.add(job.proc)
                    known.removed[job.proc] = member.reason, member.removed_by

    def cluster_of(self, cluster: int) -> str:
        """The session of a cluster; empty: it is of none."""
        known = self._clusters.get(cluster)
        return known.session if known is not None else ""

    def read(self, frame: Frame) -> dict[str, list[InteractiveEvent]]:
        """What a frame says, by session. Raises UnknownEventError."""
        said: dict[str, list[InteractiveEvent]] = {}
        changes: dict[str, list[MemberChange]] = {}
        for entry in frame.entries:
            noun, _, name = entry.stream.partition("/")
            if noun == "cluster":
                self._read_submission(entry, frame.number, said)
            elif noun in {"job", "jobs"}:
                known = self._clusters.get(int(name.partition(".")[0]))
                if known is not None and frame.number > self._sessions[known.session].frame:
                    changes.setdefault(known.session, []).extend(self._read_jobs(entry, known))
        for session, found in changes.items():
            if found:
                said.setdefault(session, []).append(InteractiveMembersSeen(frame=frame.number, changes=found))
        return said

    def _read_submission(self, entry: Entry, frame: int, said: dict[str, list[InteractiveEvent]]) -> None:
        if _IN_THE_LOG not in entry.data:
            return
        event = decode(entry.data)
        if not isinstance(event, ClusterSubmitted):
            return
        session, batch = self._sessions.get(str(event.ad.get(ID))), event.ad.get(BATCH)
        if session is None or session.owner != event.owner or frame <= session.frame:
            return
        numbers = [n for n, member in session.members.items() if member.batch == batch and not member.job]
        if not numbers or not isinstance(batch, int):
            return
        first = min(numbers) - session.members[min(numbers)].place
        self._clusters[event.cluster] = _Known(session.id, first, left=len(event.rows))
        submitted = InteractiveMembersSubmitted(frame=frame, batch=batch, cluster=event.cluster)
        said.setdefault(session.id, []).append(submitted)

    def _read_jobs(self, entry: Entry, known: _Known) -> Iterable[MemberChange]:
        for single in each(entry):
            if not single.stream.startswith("job/"):
                continue
            job = JobId.parse(single.stream.removeprefix("job/"))
            change = _change(decode(single.data), known, job.proc)
            if change is None:
                continue
            if change.status == "gone":
                known.left -= 1
                if known.left <= 0:
                    self._clusters.pop(job.cluster, None)
            yield change


def _change(event: Event, known: _Known, proc: int) -> MemberChange | None:
    reader = _CHANGES.get(type(event))
    return None if reader is None else reader(event, known, proc)


def _assigned(event: JobAssigned, known: _Known, proc: int) -> MemberChange:
    known.living.add(proc)
    site = event.notes.get(_SITE)
    where = site if isinstance(site, str) else ""
    return MemberChange(known.first + proc, "matched", site=where, machine=event.slot)


def _started(_event: JobStarted, known: _Known, proc: int) -> MemberChange:
    return MemberChange(known.first + proc, "running")


def _vacated(event: JobVacated, known: _Known, proc: int) -> MemberChange | None:
    known.living.discard(proc)
    if (removed := known.removed.pop(proc, None)) is not None:
        return _removed(known.first + proc, *removed)
    if proc in known.held:
        return None
    why = event.ending.reason.rstrip(".") or "its machine was lost, or wanted back"
    return MemberChange(known.first + proc, "idle", reason=why)


def _held(event: JobHeld, known: _Known, proc: int) -> MemberChange | None:
    if event.code == HoldCode.SpoolingInput:  # that is how a job comes into the spool
        return None
    known.held.add(proc)
    return MemberChange(known.first + proc, "held", reason=event.reason, code=event.code)


def _released(_event: JobReleased, known: _Known, proc: int) -> MemberChange | None:
    if proc not in known.held:
        return None
    known.held.discard(proc)
    return MemberChange(known.first + proc, "idle")


def _completed(event: JobCompleted, known: _Known, proc: int) -> MemberChange:
    known.living.discard(proc)
    if (removed := known.removed.pop(proc, None)) is not None:
        return _removed(known.first + proc, *removed)
    ended = event.exit
    code = -ended.signal if ended.signal else ended.code or 0
    how = f"signal {ended.signal}" if ended.signal else f"code {code}"
    return MemberChange(known.first + proc, "gone", reason=f"its program has ended with {how}", exit=code)


def _to_be_removed(event: JobRemoved, known: _Known, proc: int) -> MemberChange:
    if proc not in known.living:
        return _removed(known.first + proc, event.reason, event.by)
    known.removed[proc] = event.reason, event.by
    return MemberChange(known.first + proc, "removing", reason=event.reason, removed_by=event.by)


def _removed(number: int, reason: str, by: str) -> MemberChange:
    return MemberChange(number, "gone", reason=reason, removed_by=by or "the pool")


_CHANGES: Final[Mapping[type[Event], Callable[..., MemberChange | None]]] = {
    JobAssigned: _assigned,
    JobStarted: _started,
    JobVacated: _vacated,
    JobHeld: _held,
    JobReleased: _released,
    JobCompleted: _completed,
    JobRemoved: _to_be_removed,
}
