"""Jobs over HTTP: those in the queues, those that have left them, and what is done to them."""

from typing import Annotated, Final, Literal

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.commands.queue import Outcome
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.route import Moment, Route

State = Literal["idle", "running", "removed", "completed", "held", "suspended"]
Filter = Annotated[str, msgspec.Meta(max_length=8192)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Page = Annotated[str, msgspec.Meta(max_length=2048, pattern=r"^[A-Za-z0-9_-]*$")]
Attribute = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,255}$", examples=["RequestMemory"])
]
JobName = Annotated[
    str,
    msgspec.Meta(pattern=r"^[0-9]{1,10}\.[0-9]{1,10}(@[^\x00]{1,256})?$", examples=["12.0", "12.0@schedd"]),
]
"""`CLUSTER.PROC`, or `CLUSTER.PROC@SCHEDD` where several access points may have one of this number."""
At = Annotated[
    str,
    msgspec.Meta(
        max_length=300, pattern=r"^schedd\.[^\x00]{1,256}:[0-9]{1,18}$", examples=["schedd.schedd:7"]
    ),
]
"""`SHARD:FRAME`, as answers to writes say it."""
QueueKey = Literal[
    "submitted", "-submitted", "entered", "-entered", "attempts", "-attempts", "owner", "-owner"
]
HistoryKey = Literal[
    "left",
    "-left",
    "submitted",
    "-submitted",
    "started",
    "-started",
    "wall_time",
    "-wall_time",
    "memory",
    "-memory",
    "exit_code",
    "-exit_code",
]
Group = Literal["owner", "state", "schedd", "cluster"]

WRITES: Final = (404, 409, 412, 413, 415, 422)


class JobList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the lists of jobs have in common."""

    owner: list[Name] = []
    """Only jobs of these persons."""
    schedd: list[Name] = []
    """Only jobs of these access points."""
    cluster: list[Number] = []
    since: Moment | None = None
    """Only jobs that were submitted then or later; in the history: that left then or later."""
    until: Moment | None = None
    """Only jobs that were submitted before then; in the history: that left before then."""
    filter: Filter = ""
    """A ClassAd expression that has to be true of the job's ad."""
    fields: list[Attribute] = []
    """Attributes of the ad that each job is to be listed with."""
    limit: Limit = 50
    page: Page = ""
    """`next` of the answer before."""
    group_by: list[Group] = []
    """Instead of jobs, how many there are of each combination."""
    explain: bool = False
    """Instead of jobs, how they would be looked for."""
    at_least: At | None = None
    """Wait until this is visible: `position` of the answer to a write."""


class ListJobs(JobList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List jobs in the queues of all access points, the last submitted first."""

    state: list[State] = []
    """Only jobs in one of these states."""
    sort: QueueKey = "-submitted"
    """A minus sign has the greatest first."""
    as_of: Moment | None = None
    """
    The queues as they were then, sorted by submission.  With `group_by` owner, state or schedd as counts, those at the end of the last full
    minute before, of 90 days: those that were suspended count as running, and those that had ended and stayed are left out.
    """


class ListHistory(JobList, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List jobs that have left their queue, the last ones first."""

    state: list[Literal["completed", "removed"]] = []
    """Only jobs that ended like this."""
    sort: HistoryKey = "-left"
    """A minus sign has the greatest first; jobs without such a value come last."""
    as_of: Moment | None = None
    """The history as it was then."""


class Job(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job.  What is absent is not known, or there is nothing of it yet."""

    id: str
    """`CLUSTER.PROC@SCHEDD`."""
    schedd: str
    cluster: int
    proc: int
    owner: str
    state: State
    submitted: Moment
    entered: Moment | None = None
    """Since when it is in this state."""
    attempts: int | None = None
    """How many runs of it were begun."""
    slot: str | None = None
    """Where it runs."""
    running_since: Moment | None = None
    hold_reason: str | None = None
    left: Moment | None = None
    """When it left the queue."""
    exit_code: int | None = None
    """What its program has exited with."""
    exit_signal: int | None = None
    """The signal that has ended its program, which then has no exit code."""
    wall_time: float | None = None
    """Seconds, of all attempts."""
    memory: int | None = None
    """MiB, the peak."""
    attributes: Ad | None = None
    """Of its ad: a value, or `{"expr": TEXT}`."""


class GroupCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs have something in common."""

    key: dict[str, str]
    count: int


class ListPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs are looked for."""

    condition: str
    """What the tables are asked: of the filter as much as can be said of columns."""
    values: list[str]
    """What stands for $1, $2 and so on in it."""
    steps: list[str]
    """How the database goes about it, the last step first: along which index, or through a whole table."""
    rows: int
    """How many jobs it expects to find."""
    tried: bool
    """Whether the filter is then tried on the ad of each of them."""


class Jobs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of jobs, or counts of them."""

    jobs: list[Job] | msgspec.UnsetType = msgspec.UNSET
    """Absent with `group_by` and with `explain`."""
    groups: list[GroupCount] | msgspec.UnsetType = msgspec.UNSET
    """With `group_by`, the largest first; absent without."""
    plan: ListPlan | None = None
    """With `explain`."""
    next: str | None = None
    """
    The page token of what comes behind; absent: that was all.  With a filter a page may be short, even empty, and yet have a next one:
    the search ended because it took too long.
    """
    frames: dict[str, int] = {}
    """How far each queue has been read: the number of its last frame in this answer."""


class GetJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get one job, in its queue or in the history, with its ad."""

    id: JobName
    fields: list[Attribute] = []
    """Only these attributes of the ad."""
    at_least: At | None = None
    """Wait until this is visible."""
    as_of: Moment | None = None
    """The job as it was then."""


class ActOnJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hold, release, remove or vacate jobs; the action stands behind the colon of the path."""

    action: Literal["hold", "release", "remove", "vacate", "suspend", "continue"]
    dry_run: bool = False
    """Say how many jobs that would be, and do nothing."""


class JobSelection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, and why: those that are listed, or those in one queue that a filter is true of."""

    ids: Annotated[list[JobName], msgspec.Meta(max_length=10_000)] = []
    """One without an access point is in the queue of `schedd`."""
    filter: Filter = ""
    owner: Annotated[list[Name], msgspec.Meta(max_length=1000)] = []
    """Whose jobs the filter is about; none: one's own."""
    schedd: Name = ""
    """Which access point; empty: the pool's own."""
    expect: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many jobs this is meant to be; nothing is done if it is another number.  A filter needs it."""
    reason: Annotated[str, msgspec.Meta(max_length=4096)] = ""


class JobOutcomeOf(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one job."""

    id: str
    outcome: Outcome
    state: str
    """At that moment."""


class Outcomes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was done, job by job."""

    outcomes: list[JobOutcomeOf]
    position: str = ""
    """Where it was recorded: for `at_least`."""
    count: int = 0
    """With `dry_run`: how many jobs that would be."""


class SubmitJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Submit a cluster of jobs, recorded when this returns.  With an Idempotency-Key a repeat submits nothing more.
    """

    dry_run: bool = False
    """Check the jobs and submit nothing."""
    schedd: Name = ""
    """To which access point; empty: the pool's own."""
    spool: bool = False
    """
    The jobs are held until their input files have been sent to the access point: content with PUT, and then which job has which.
    """


class Submission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Job `p` is `ad` plus `columns[i] = rows[p][i]`: attributes of the job ad, as a submit description makes them.  Jobs without
    Requirements get those that the submit language would give them, with the requests for cores, memory and disk that they do not have.
    """

    ad: Ad
    columns: Annotated[list[Attribute], msgspec.Meta(max_length=1000)] = []
    rows: Annotated[list[list[Scalar]], msgspec.Meta(max_length=1_000_000)] = []
    """None: it is one job."""


class SubmittedJobs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cluster is recorded; with `dry_run`: it might be."""

    schedd: str
    count: int
    cluster: int | None = None
    position: str = ""
    """Where it was recorded: for `at_least`."""
    warnings: list[str] = []
    """What the site would rather have otherwise."""


class EditJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Change attributes of a job in the queue; with If-Match only if it is still as it was read."""

    id: JobName
    dry_run: bool = False


class JobChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change."""

    attributes: Annotated[dict[Attribute, Scalar], msgspec.Meta(min_length=1, max_length=1000)]


LIST_JOBS = Route(
    "GET", "/jobs", "list_jobs", parameters=ListJobs, reply=Jobs, errors=(410,), headers=("If-None-Match",)
)
LIST_HISTORY = Route(
    "GET", "/history", "list_history", parameters=ListHistory, reply=Jobs, headers=("If-None-Match",)
)
GET_JOB = Route(
    "GET",
    "/jobs/{id}",
    "get_job",
    parameters=GetJob,
    reply=Job,
    errors=(404, 409),
    headers=("If-None-Match",),
)
SUBMIT_JOBS = Route(
    "POST",
    "/jobs",
    "submit_jobs",
    parameters=SubmitJobs,
    body=Submission,
    text_body=True,
    reply=SubmittedJobs,
    level="WRITE",
    errors=WRITES,
    headers=("Idempotency-Key",),
)
ACT_ON_JOBS = Route(
    "POST",
    "/jobs:{action}",
    "act_on_jobs",
    parameters=ActOnJobs,
    body=JobSelection,
    reply=Outcomes,
    level="WRITE",
    errors=WRITES,
    headers=("Idempotency-Key",),
)
EDIT_JOB = Route(
    "PATCH",
    "/jobs/{id}",
    "edit_job",
    parameters=EditJob,
    body=JobChange,
    reply=Outcomes,
    level="WRITE",
    errors=WRITES,
    headers=("Idempotency-Key", "If-Match"),
)
