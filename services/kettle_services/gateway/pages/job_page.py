"""The page of one job: where it is and why, what has happened to it, and its ad."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, cast

import msgspec
from aiohttp import web

from kettle.client.explanations.moved_files import AttemptFiles
from kettle_services.gateway.pages.gantt import Gantt, drawn
from kettle_services.gateway.pages.job_edits import Editable, EditFields, editable
from kettle_services.gateway.pages.job_edits import typed as as_typed
from kettle_services.gateway.pages.job_services import services_of
from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.wording import number, size, span
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.command_lines import command_of, value_text
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.moved_files import MovedFiles
from kettle_wire.rest.jobs import GET_JOB, At, GetJob, Job, JobName
from kettle_wire.rest.past import (
    GET_HISTORY_OF_JOB,
    GET_TIMELINE,
    GET_WHY,
    GetHistoryOfJob,
    GetTimeline,
    GetWhy,
    JobRecord,
    JobRecords,
    Phase,
    Timeline,
    Why,
)
from kettle_wire.rest.route import Moment

_QUEUED: Final = frozenset({"idle", "running", "held", "suspended"})


class ShowJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be asked of the page."""

    id: JobName
    as_of: Moment | None = None
    compare: Moment | None = None
    """Show how the ad differs from what it was then."""
    at_least: At | None = None
    """Wait until this is visible."""


AGAIN_S: Final = 10.0
"""Why a job waits is asked again after this time, also if nothing was recorded of the job itself."""


def _subject(asked: Asked) -> LiveSubject:
    job, _ = job_name(asked.parameters.id)
    return LiveSubject(job=job, again_s=AGAIN_S)


JOB: Final = Page(
    "/jobs/{id}", "Job", template="job.html", parameters=ShowJob, live="job_live.html", subject=_subject
)


class Attribute(msgspec.Struct, frozen=True):
    """A line of the ad."""

    name: str
    value: str
    was: str | None = None
    """What it was at the time that it is compared with; None: the same, or there was no such one."""
    differs: bool = False


class Clause(msgspec.Struct, frozen=True):
    """Something that slots and job ask of each other."""

    passes: int
    asked: int
    only: int
    side: str
    text: str


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    job: Job
    name: str
    """`CLUSTER.PROC`."""
    command: str
    why: Why | None
    no_reason: str
    """Why there is no answer to that."""
    clauses: Sequence[Clause]
    phases: Sequence[Phase]
    gantt: Gantt | None
    times: Sequence[tuple[str, str]]
    """What it did for how long."""
    events: Sequence[JobRecord]
    no_past: str
    """Why its time line and events are not known at the moment."""
    attributes: Sequence[Attribute]
    compare: Moment | None
    asks: Mapping[str, str]
    """Resources that it asks for."""
    used: Mapping[str, str]
    """What the runs that have ended have used."""
    services: Sequence[tuple[str, str]]
    """What it publishes, each with the path of its pages."""
    files: Sequence[tuple[str, str]]
    """What its files are called, by what they are."""
    moved: Sequence[AttemptFiles]
    """The files that its runs have moved by URL, the last run first."""
    queued: bool
    edited: Sequence[Editable]
    """What is usually changed of a job that waits; none: it does not wait."""
    kept: EditFields | None = None
    """What was typed and not done."""
    trouble: str = ""
    """Why it was not."""
    told: str = ""
    """What would be if it were."""
    tag: str
    """Names the state that is shown."""


class _Last(msgspec.Struct, frozen=True):
    """What was shown last to somebody who watches."""

    tag: str
    at: float
    """By the monotonic clock."""
    shown: Shown


_LAST: Final = web.RequestKey("kettle-job-page", _Last)


class JobPage:
    """Shows it."""

    def __init__(self, questions: Questions, again_s: float = AGAIN_S) -> None:
        self._questions = questions
        self._again_s = again_s

    async def show(self, asked: Asked) -> Shown:
        """
        Everything about a job, now or at a moment; who watches it is shown the same again as long as it has not changed.
        """
        wanted: ShowJob = asked.parameters
        last: _Last | None = asked.request.get(_LAST)
        of_job = GetJob(id=wanted.id, as_of=wanted.as_of, at_least=None if last else wanted.at_least)
        job, tag = await self._questions.ask_tagged(asked, GET_JOB, of_job, Job, headers={})
        now = time.monotonic()
        if last is not None and last.tag == tag and now < last.at + self._again_s:
            return last.shown
        shown = await self._shown(asked, job, tag)
        asked.request[_LAST] = _Last(tag, now, shown)
        return shown

    async def show_again(
        self, asked: Asked, job: JobName, typed: EditFields, refusal: RequestRefused | None, told: str = ""
    ) -> Shown:
        """The job as it is now, with a form that was not carried out: why, or what would be if it were."""
        now = msgspec.structs.replace(asked, parameters=ShowJob(id=job), body=None)
        shown = await self.show(now)
        view = msgspec.structs.replace(
            shown.view, edited=as_typed(typed), kept=typed, trouble=str(refusal or ""), told=told
        )
        status = refusal.status if refusal is not None else 200
        return msgspec.structs.replace(shown, view=view, status=status, path=f"/jobs/{job}")

    async def _shown(self, asked: Asked, job: Job, tag: str) -> Shown:
        wanted: ShowJob = asked.parameters
        ask = self._questions.ask
        ask_or_say = self._questions.ask_or_say
        timeline, no_past = await ask_or_say(asked, GET_TIMELINE, GetTimeline(id=job.id), Timeline)
        past = GetHistoryOfJob(id=job.id, until=wanted.as_of)
        records, _ = await ask_or_say(asked, GET_HISTORY_OF_JOB, past, JobRecords)
        why, no_reason = await ask_or_say(asked, GET_WHY, GetWhy(id=job.id, at=wanted.as_of), Why)
        ad = job.attributes or {}
        before: Ad | None = None
        if wanted.compare is not None:
            then = await ask(asked, GET_JOB, GetJob(id=job.id, as_of=wanted.compare), Job)
            before = then.attributes or {}
        now = wanted.as_of or datetime.now(UTC)
        phases = _until(timeline.phases if timeline else (), wanted.as_of)
        texts = {name: value_text(value) for name, value in ad.items()}
        view = JobView(
            job=job,
            name=f"{job.cluster}.{job.proc}",
            command=command_of(texts.get("Cmd", ""), texts),
            why=why,
            no_reason=no_reason,
            clauses=_clauses(why),
            phases=phases,
            gantt=drawn(phases, now),
            times=[
                (did, span(seconds))
                for did, state in _TIMES.items()
                if (seconds := _seconds(phases, state, now)) or did in _ALWAYS
            ],
            events=records.events if records else (),
            no_past=no_past,
            attributes=_attributes(ad, before),
            compare=wanted.compare,
            services=services_of(job, ad) if job.state == "running" and not wanted.as_of else (),
            asks=_asks(texts),
            used=_used(job, ad),
            files=[
                (what, texts[key])
                for key, what in _FILES.items()
                if texts.get(key) not in {None, "", "/dev/null"}
            ],
            moved=_moved(records.events if records else ()),
            queued=job.state in _QUEUED and wanted.as_of is None,
            edited=editable(job) if wanted.as_of is None else (),
            tag=tag,
        )
        return Shown(view, title=f"Job {job.cluster}.{job.proc}")


_TIMES: Final = {"waited": "idle", "was held": "held", "ran": "running", "was suspended": "suspended"}
_ALWAYS: Final = frozenset({"waited", "ran"})
"""Said also where there is nothing of it."""
_BYTES: Final = {"RequestMemory": 2**20, "RequestDisk": 2**10}
"""What an amount of these is counted in."""
_ASKS: Final = {
    "RequestCpus": "Cores",
    "RequestMemory": "Memory",
    "RequestDisk": "Disk",
    "RequestGPUs": "GPUs",
}
_FILES: Final = {
    "Iwd": "Directory",
    "In": "Standard input",
    "Out": "Standard output",
    "Err": "Standard error",
    "UserLog": "Event log",
    "TransferInput": "Files that go along",
    "TransferOutput": "Files that come back",
}


def _asks(texts: Mapping[str, str]) -> dict[str, str]:
    """The resources that it asks for, with units."""
    asks: dict[str, str] = {}
    for key, name in _ASKS.items():
        if (text := texts.get(key)) is not None:
            unit = _BYTES.get(key)
            asks[name] = size(int(text) * unit) if unit and text.isdecimal() else text
    return asks


def _used(job: Job, ad: Ad) -> dict[str, str]:
    """What is recorded of runs when they end, with units."""
    wall, memory = ad.get("RemoteWallClockTime"), job.memory or ad.get("MemoryUsage")
    cpu = [ad.get(name) for name in ("CumulativeRemoteUserCpu", "CumulativeRemoteSysCpu")]
    used: dict[str, str] = {}
    if isinstance(wall, int | float) and wall > 0:
        used["Wall time"] = f"{span(wall)}, all runs"
        used["CPU time"] = f"{span(sum(each for each in cpu if isinstance(each, int | float)))}, all runs"
        if isinstance(memory, int):
            used["Memory, at most"] = f"{number(memory)} MiB"
    return used


def _moved(records: Sequence[JobRecord]) -> list[AttemptFiles]:
    """Of the runs that have moved some."""
    found: list[AttemptFiles] = []
    for each in records:
        usage = each.event.get("usage")
        moved = cast("dict[str, object]", usage).get("moved") if isinstance(usage, dict) else None
        if moved is not None:
            attempt = int(each.event.get("attempt", 0))
            found.append(AttemptFiles(attempt=attempt, moved=msgspec.convert(moved, MovedFiles)))
    return found[::-1]


def _until(phases: Sequence[Phase], moment: datetime | None) -> list[Phase]:
    """The phases that had begun."""
    if moment is None:
        return list(phases)
    begun = [phase for phase in phases if phase.since <= moment]
    if begun and begun[-1].until is not None:
        begun[-1] = msgspec.structs.replace(begun[-1], until=None)
    return begun


def _seconds(phases: Sequence[Phase], state: str, now: datetime) -> float:
    return sum(
        ((phase.until or now) - phase.since).total_seconds() for phase in phases if phase.state == state
    )


def _clauses(why: Why | None) -> list[Clause]:
    """What was tried on the slots, what refuses most first."""
    if why is None or why.verdict is None or why.verdict.analysis is None:
        return []
    return [
        Clause(
            each.passes, each.asked, each.only, "the job's" if each.side == "job" else "the slot's", each.text
        )
        for each in why.verdict.analysis.clauses
    ]


def _attributes(ad: Ad, before: Ad | None) -> list[Attribute]:
    """The ad by name; compared with another one, what differs first."""
    texts = {name: value_text(value) for name, value in ad.items()}
    if before is None:
        return [Attribute(name, texts[name]) for name in sorted(texts, key=str.lower)]
    was = {name: value_text(value) for name, value in before.items()}
    found = [
        Attribute(name, texts.get(name, ""), was.get(name), texts.get(name) != was.get(name))
        for name in sorted(texts.keys() | was.keys(), key=str.lower)
    ]
    return sorted(found, key=lambda each: not each.differs)
