"""
What has happened to a job.

Pure.  A fold over what is recorded of it, the same that its queue makes.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from kettle.client.explanations import timeline
from kettle.client.explanations.moved_files import AttemptFiles, files_of
from kettle.client.jobs.records import decoded
from kettle.jobs.recorded_ad import after
from kettle.projections.stored_projection import instant
from kettle_services.gateway.rest.job_rows import STATES, Viewer, exit_of
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import RecordedEvent
from kettle_wire.events import ClusterSubmitted, FactorySubmitted, decode, tag_of
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import Job
from kettle_wire.rest.past import JobRecord, Phase


class JobPast:
    """A job from its submission on."""

    def __init__(self, job: JobId, schedd: str, recorded: Sequence[RecordedEvent]) -> None:
        self._job = job
        self._schedd = schedd
        self._recorded = recorded

    @property
    def owner(self) -> str:
        """Whose it is; empty if its submission is not recorded."""
        for each in self._recorded:
            event = decode(each.data)
            if isinstance(event, ClusterSubmitted | FactorySubmitted):
                return event.owner
        return ""

    def records(self, viewer: Viewer, until: int | None) -> list[JobRecord]:
        """The events as somebody sees them; `until`: microseconds since the epoch."""
        owner = self.owner
        shown = [each for each in self._recorded if until is None or each.at <= until]
        told = timeline.lines(map(decoded, shown))
        return [_record(each, line.sentence, viewer, owner) for each, line in zip(shown, told, strict=True)]

    def ad_at(self, moment: int) -> Ad | None:
        """The ad at a time, microseconds since the epoch; None: it was not there yet."""
        ad: Ad | None = None
        for each in self._recorded:
            if each.at > moment:
                break
            ad = after(ad, self._job, self._schedd, each)
        return ad

    def files(self) -> list[AttemptFiles]:
        """The files that its runs moved by URL."""
        return files_of(decode(each.data) for each in self._recorded)

    def phases(self) -> list[Phase]:
        """The states that it was in, in order."""
        found: list[Phase] = []
        ad: Ad | None = None
        for each in self._recorded:
            ad = after(ad, self._job, self._schedd, each)
            if ad is None:
                continue
            now = _phase(ad, each.at)
            if found:
                if (found[-1].state, found[-1].slot) == (now.state, now.slot):
                    continue
                found[-1] = msgspec.structs.replace(found[-1], until=now.since)
            found.append(now)
        return found


def past_job(name: str, ad: Ad, viewer: Viewer) -> Job:
    """A job as an ad of the past has it; `name`: `CLUSTER.PROC@SCHEDD`."""
    number, _, schedd = name.partition("@")
    job, owner = JobId.parse(number), str(ad["Owner"])
    code, signal = exit_of(ad)
    state = STATES[int(cast("int", ad["JobStatus"]))]
    entered = ad.get("EnteredCurrentStatus")
    return Job(
        id=name,
        schedd=schedd,
        cluster=job.cluster,
        proc=job.proc,
        owner=owner,
        state=state,
        submitted=datetime.fromtimestamp(cast("int", ad["QDate"]), tz=UTC),  # the queue sets it
        entered=datetime.fromtimestamp(entered, tz=UTC) if isinstance(entered, int) else None,
        slot=_text(ad, "RemoteHost") if state in {"running", "suspended"} else None,
        hold_reason=_text(ad, "HoldReason") if state == "held" else None,
        exit_code=code,
        exit_signal=signal,
        attributes=viewer.sees(ad, owner),
    )


def phase_at(phases: Sequence[Phase], moment: Any) -> Phase | None:
    """The phase that a moment is in; None: before the first."""
    return next((each for each in reversed(phases) if each.since <= moment), None)


def _phase(ad: Ad, at: int) -> Phase:
    state = STATES[int(cast("int", ad["JobStatus"]))]
    runs = state in {"running", "suspended"}
    slot, hold, removal = (_text(ad, name) for name in ("RemoteHost", "HoldReason", "RemoveReason"))
    return Phase(
        state=state,
        since=instant(at),
        slot=slot if runs else None,
        reason=hold if state == "held" else removal if state == "removed" else None,
    )


def _text(ad: Ad, name: str) -> str | None:
    value = ad.get(name)
    return value if isinstance(value, str) else None


def _record(recorded: RecordedEvent, sentence: str, viewer: Viewer, owner: str) -> JobRecord:
    event = decode(recorded.data)
    fields: dict[str, Any]
    if isinstance(event, ClusterSubmitted | FactorySubmitted):
        fields = {"owner": event.owner, "jobs": len(event.rows)}
    else:
        fields = msgspec.to_builtins(event)
        if isinstance(fields.get("attributes"), dict):
            fields["attributes"] = viewer.sees(fields["attributes"], owner)
    fields.pop("type", None)
    return JobRecord(
        type=tag_of(event), at=instant(recorded.at), frame=recorded.frame, sentence=sentence, event=fields
    )
