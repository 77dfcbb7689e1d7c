"""
What a schedd is asked: by submitters about their jobs, by the negotiator about claims; what shadows report is in `attempt_reports`.
"""

from typing import Annotated, Literal

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.access import Access
from kettle_wire.commands.queue import (
    ACT,
    ASK_ROOM,
    EDIT,
    EDIT_JOBS,
    QUERY_JOBS,
    SUBMIT,
    Act,
    Acted,
    Action,
    AskRoom,
    Edit,
    Edited,
    EditJobs,
    FactoryOutcome,
    JobAds,
    JobOutcome,
    Outcome,
    OutcomeRun,
    QueryJobs,
    Room,
    Select,
    Submit,
    Submitted,
    Unmade,
)
from kettle_wire.commands.startd import Done, Occupied
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.job_tokens import NeededToken
from kettle_wire.jobs import JobId, Name, Number
from kettle_wire.spooling import Procs, Size

__all__ = [
    "ACT",
    "ASK_ROOM",
    "EDIT",
    "EDIT_JOBS",
    "QUERY_JOBS",
    "SUBMIT",
    "Act",
    "Acted",
    "Action",
    "AskRoom",
    "Edit",
    "EditJobs",
    "Edited",
    "FactoryOutcome",
    "JobAds",
    "JobOutcome",
    "Outcome",
    "OutcomeRun",
    "QueryJobs",
    "Room",
    "Select",
    "Submit",
    "Submitted",
    "Unmade",
]
"""Beside what stands here, what stands in `queue`."""


class RunNow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Run an idle job at once in the place of running jobs of the same owner, who asks for it. `id` makes a repeat harmless.
    """

    id: CommandId
    job: JobId
    instead_of: list[JobId]
    """On one machine; they are asked to end, and go back into the queue."""


class RunningNow(msgspec.Struct, frozen=True, kw_only=True):
    """The machine has accepted: the job runs as soon as those are gone that make room."""

    job: JobId


class QueryEvents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything recorded of one job, its cluster's submission included."""

    job: JobId


class OpenSealed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What this queue has sealed of jobs of the asker, as the history has it (`Environment`, `Env`): its key is here alone.
    """

    values: Annotated[list[str], msgspec.Meta(max_length=1000)]


class Unsealed(msgspec.Struct, frozen=True, kw_only=True):
    """
    The values in the order of the question; one that is not the asker's, or of another queue, stays sealed.
    """

    values: list[Scalar]


class RecordedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event as recorded; `data` is its msgpack."""

    stream: str
    version: int
    frame: int
    at: int
    """Microseconds since the epoch."""
    data: bytes


class JobEvents(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of recording."""

    events: list[RecordedEvent]
    shard: str
    never_made: bool = False
    """It was to come into the queue after its submission (late materialisation), and never will."""


class Explain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What this schedd knows of why a job is where it is."""

    job: JobId


class PolicyOutlook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What may still become of a job by a periodic expression, and what that waits for."""

    name: str
    """PeriodicRelease, or the site's SYSTEM_PERIODIC_RELEASE_NAME."""
    action: Literal["hold", "release", "remove", "vacate"]
    expression: str
    delay: float | None = None
    """After so many seconds it is true, if nothing changes but the time; None: it would not be, as far as one looked."""
    false: list[str] = []
    """Its clauses that are not true now."""
    values: dict[str, str] = {}
    """What the attributes are for which these ask."""
    never: str = ""
    """Why it does not count, however true it is."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The schedd's side of `why`; the negotiator knows the rest by (submitter, schedd, autocluster)."""

    job: JobId
    status: str
    reason: str
    submitter: str
    autocluster: int | None
    ad: Ad
    ordered: Literal["", "vacate", "vacate_fast", "suspend"] = ""
    """What counts of its owner's orders to the attempt that runs."""
    policies: list[PolicyOutlook] = []


class ExplainJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What this schedd knows of why jobs are where they are; those for which it is the same reason are told together.
    """

    select: Select


class ExplainedJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are where they are for one reason, with what is known of the first."""

    jobs: int
    last: JobId
    explanation: Explanation


class UnmadeReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why jobs of a cluster are not in the queue yet."""

    cluster: int
    unmade: int
    reason: str


class JobsExplained(msgspec.Struct, frozen=True, kw_only=True):
    """
    All of the selection that is in the queue, the largest groups first; `more`: jobs of groups that are left out.
    """

    groups: list[ExplainedJobs]
    unmade: list[UnmadeReason] = []
    more: int = 0


class MatchedSlot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The negotiator's advice: up to `count` jobs of an autocluster may go to a slot."""

    submitter: str
    autocluster: int
    count: int
    slot: str
    startd: str
    capability: str
    limits: dict[str, float] = {}
    """How much of which concurrency limits each job uses there."""
    also: list[Occupied] = []
    """Parts of the same partitionable slot whose jobs make room together with the one on `slot`."""
    nodes: int = 1
    """
    Slots that each of these jobs gets at the same time, of which `count` are here: the others are in the same message.
    """


class Matched(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All matches of one cycle for this schedd."""

    cycle: int
    matches: list[MatchedSlot]
    significant: list[str] = []
    """
    Attributes that the machines of the pool ask of jobs, in lower case, besides those that schedds always show; none if
    there is nothing new, for a schedd forgets none as long as it runs.
    """


class AskAccess(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The right to look into a job that runs, for its owner or a super user of the queue."""

    job: JobId


class AccessGiven(msgspec.Struct, frozen=True, kw_only=True):
    """The right, and where the job runs."""

    access: Access
    startd: str
    slot: str


class JobCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """
    A shadow passes on what the program of an attempt wants done as one of the job's owner: see `questions.Command`.

    `body` is the request of the verb, as it travels.
    """

    job: JobId
    attempt: int
    verb: Name
    body: bytes


class JobAnswer(msgspec.Struct, frozen=True):
    """The reply of the verb, as it travels."""

    body: bytes


class FindSpool(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the files of a cluster's jobs are taken and given, if the caller may have to do with them."""

    cluster: Number
    person: Name = ""
    waiting: bool = False
    """On whose behalf a shadow asks, and whether it wants to know which jobs wait."""
    by_job: bool = False
    by_token: bool = False
    """Files are sent by a running job, or with a token, which have nothing to do with jobs that run on the access point."""


class SpoolFound(msgspec.Struct, frozen=True, kw_only=True):
    """They may."""

    shadow: str
    waiting: list[Procs] = []
    """Jobs that are held for their input files."""


class ReleaseSpooled(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The input files of jobs are on our disk, `size` bytes if each counts once. A repeat changes nothing."""

    cluster: Number
    jobs: list[Procs]
    size: Size = 0


class SpooledReleased(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded."""

    position: Position


class AskNeededTokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ask which tokens a running job was submitted to have, and whose they are to be."""

    job: JobId
    attempt: Number


class TokensNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """What the queue says of it, not the job."""

    owner: str
    tokens: list[NeededToken]


RUN_NOW = Endpoint(
    "schedd", "run_now", RunNow, RunningNow, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
QUERY_EVENTS = Endpoint(
    "schedd",
    "query_events",
    QueryEvents,
    JobEvents,
    callers=(Caller.USER, Caller.JOB, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
OPEN_SEALED = Endpoint(
    "schedd", "open_sealed", OpenSealed, Unsealed, callers=(Caller.USER, Caller.JOB), repeat=Repeat.QUERY
)
_ASKERS = (Caller.USER, Caller.JOB)
EXPLAIN = Endpoint("schedd", "explain", Explain, Explanation, callers=_ASKERS, repeat=Repeat.QUERY)
EXPLAIN_JOBS = Endpoint(
    "schedd", "explain_jobs", ExplainJobs, JobsExplained, callers=_ASKERS, repeat=Repeat.QUERY
)
ACCESS = Endpoint(
    "schedd", "access", AskAccess, AccessGiven, callers=(Caller.USER,), repeat=Repeat.QUERY, reads=False
)
MATCHED = Endpoint("schedd", "matched", Matched, Done, callers=(Caller.NEGOTIATOR,), repeat=Repeat.HARMLESS)
JOB_COMMAND = Endpoint(
    "schedd", "job_command", JobCommand, JobAnswer, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS
)
FIND_SPOOL = Endpoint(
    "schedd",
    "find_spool",
    FindSpool,
    SpoolFound,
    callers=(Caller.USER, Caller.JOB, Caller.SHADOW),
    repeat=Repeat.QUERY,
)
RELEASE_SPOOLED = Endpoint(
    "schedd",
    "release_spooled",
    ReleaseSpooled,
    SpooledReleased,
    callers=(Caller.SHADOW,),
    repeat=Repeat.HARMLESS,
)
NEEDED_TOKENS = Endpoint(
    "schedd",
    "needed_tokens",
    AskNeededTokens,
    TokensNeeded,
    callers=(Caller.IAM, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)
