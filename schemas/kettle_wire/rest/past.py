"""What has happened to a job, and why it is where it is."""

from typing import Any

import msgspec

from kettle_wire.commands.negotiator import Analysis, Verdict
from kettle_wire.commands.schedd import Explanation
from kettle_wire.moved_files import MovedFiles
from kettle_wire.rest.jobs import JobChange, JobName
from kettle_wire.rest.route import Moment, Route


class GetHistoryOfJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get everything that is recorded of a job, in order."""

    id: JobName
    until: Moment | None = None
    """Only what was recorded up to then."""


class JobRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded event of a job."""

    type: str
    """`noun.verb/N`, as the reference of events lists them."""
    at: Moment
    frame: int
    sentence: str
    """What happened, in words."""
    event: dict[str, Any]
    """Its fields; of a submission only how many jobs it has, and whose they are."""


class JobRecords(msgspec.Struct, frozen=True, kw_only=True):
    """What is recorded of a job."""

    id: str
    events: list[JobRecord]


class GetTimeline(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get the states that a job has been in, with the times, in order."""

    id: JobName


class Phase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job is in one state, on one machine."""

    state: str
    since: Moment
    until: Moment | None = None
    """Absent: that is its state now."""
    slot: str | None = None
    """Where it ran."""
    reason: str | None = None
    """Of a hold or a removal."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The states of a job."""

    id: str
    phases: list[Phase]


class GetTransfers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get what is recorded of the files that a job moved by URL, run by run: what served each, what was tried, what was compared.
    """

    id: JobName


class TransfersOfAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The files that one run moved by URL."""

    attempt: int
    """Counts the runs of the job from 1."""
    moved: MovedFiles
    said: list[str]
    """In sentences for people."""


class Transfers(msgspec.Struct, frozen=True, kw_only=True):
    """The files that a job moved by URL; runs that moved none are left out."""

    id: str
    attempts: list[TransfersOfAttempt]


class GetWhy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask why a job is where it is; with `at`, which state it was in then and what was said of that."""

    id: JobName
    at: Moment | None = None
    """A moment of the past."""


class Why(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the pool knows about why a job is where it is."""

    id: str
    sentence: str
    """The reason in words."""
    more: list[str] = []
    """What explains it, and what to do next, in sentences."""
    phase: Phase | None = None
    """With `at`: what was recorded of that moment."""
    explanation: Explanation | None = None
    """What its access point knows, while it is in the queue."""
    verdict: Verdict | None = None
    """What the last negotiation said of jobs like it."""
    trouble: str = ""
    """Why there is no verdict although there should be one."""


class AskWhatIf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask on how many slots a job that waits could run if it had other attributes. Nothing is changed."""

    id: JobName


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the machines of this moment say to the job as it is, and as it would be."""

    id: str
    sentence: str
    now: Analysis
    then: Analysis


GET_HISTORY_OF_JOB = Route(
    "GET",
    "/jobs/{id}/history",
    "get_history_of_job",
    parameters=GetHistoryOfJob,
    reply=JobRecords,
    errors=(404, 409),
)
GET_TIMELINE = Route(
    "GET", "/jobs/{id}/timeline", "get_timeline", parameters=GetTimeline, reply=Timeline, errors=(404, 409)
)
GET_TRANSFERS = Route(
    "GET",
    "/jobs/{id}/transfers",
    "get_transfers",
    parameters=GetTransfers,
    reply=Transfers,
    errors=(404, 409),
)
GET_WHY = Route("GET", "/jobs/{id}/why", "get_why", parameters=GetWhy, reply=Why, errors=(404, 409))
ASK_WHAT_IF = Route(
    "POST",
    "/jobs/{id}/what-if",
    "ask_what_if",
    parameters=AskWhatIf,
    body=JobChange,
    reply=WhatIf,
    errors=(404, 409, 413, 415, 422),
)
