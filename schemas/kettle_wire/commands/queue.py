"""
What people ask a schedd about their queue: to submit, to do something to jobs, to change them, and which there are.

It stands apart from the rest of what a schedd is asked (`kettle_wire.commands.schedd`, where it can be had as well), because
commands that ask one question and end should load no more than the question.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.jobs import JobId, Name, Number


class Submit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One cluster: job `p` is `ad` plus `columns[i] = rows[p][i]`. `id` makes a repeat harmless."""

    id: CommandId
    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    spool: bool = False
    """
    The jobs' files are sent to the access point, and until they are all there the jobs are held with code 16.
    """


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster is recorded."""

    cluster: int
    count: int
    position: Position
    warnings: list[str] = []
    """What the site would rather have otherwise."""


class AskRoom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """May so many jobs be submitted as one cluster? Asked before very many jobs are made."""

    jobs: Number
    late: bool = False
    """They are to come into the queue little by little."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """At this moment they may."""


Action = Literal[
    "hold", "release", "remove", "remove_x", "vacate", "vacate_fast", "suspend", "continue", "unroute"
]


class Select(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Which jobs: all that are listed, or in a listed cluster, or of a listed owner; and that meet `constraint`.

    With no list at all, every job that meets `constraint`; an empty constraint is true.
    """

    jobs: list[JobId] = []
    clusters: list[Number] = []
    owners: list[Name] = []
    constraint: str = ""


class Act(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Do one thing to some jobs."""

    id: CommandId
    action: Action
    select: Select
    reason: str = ""
    subcode: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    """HoldReasonSubCode, of a hold."""


Outcome = Literal["done", "not_found", "bad_status", "already_done", "denied", "too_large"]


class JobOutcome(msgspec.Struct, frozen=True, gc=False):
    """What an action did to one job."""

    job: JobId
    outcome: Outcome
    status: str = ""
    """The job's status at that moment: idle, running, suspended, vacating, held, removed, completed."""


class OutcomeRun(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What an action did to each of some jobs of a cluster whose numbers follow each other."""

    cluster: int
    first: int
    count: int
    outcome: Outcome
    status: str = ""
    """As in `JobOutcome`."""


def outcomes_of(runs: Iterable[OutcomeRun]) -> list[JobOutcome]:
    """One outcome for each job."""
    return [
        JobOutcome(JobId(run.cluster, proc), run.outcome, run.status)
        for run in runs
        for proc in range(run.first, run.first + run.count)
    ]


class FactoryOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What an action did to the jobs of a cluster that are not made yet."""

    cluster: int
    outcome: Outcome
    unmade: int
    """How many they were."""


class Acted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each job that the selection named or found."""

    runs: list[OutcomeRun]
    position: Position
    factories: list[FactoryOutcome] = []
    """Of the clusters in the selection whose jobs are made little by little."""

    @property
    def outcomes(self) -> list[JobOutcome]:
        """One outcome for each job."""
        return outcomes_of(self.runs)


class Edit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Set attributes of a cluster. `id` makes a repeat harmless."""

    id: CommandId
    cluster: Number
    attributes: Ad
    """JobMaterializeLimit and JobMaterializeMaxIdle: no others can be set."""


class EditJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Set attributes of jobs, or change their priority; `Acted` is the answer. `id` makes a repeat harmless.
    """

    id: CommandId
    select: Select
    attributes: Ad = {}
    add_to_priority: int = 0
    """To JobPrio of each."""


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """They are set."""

    cluster: int
    position: Position


class QueryJobs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The job ads of a selection, in queue order."""

    select: Select
    projection: list[str] = []
    """Attribute names; empty: all."""
    limit: Number = 0
    """0: all."""
    at_least: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Answer only from a state that has seen this frame."""
    totals: bool = False
    """No ads, only how many there are of each status."""
    page: Annotated[int, msgspec.Meta(ge=0)] = 0
    """After about so many bytes, or a second of looking, the answer ends and says how to go on; 0: it is one answer."""
    after: JobId | None = None
    """Only the jobs that come after this one in the queue, which the page before ended with."""


class Unmade(msgspec.Struct, frozen=True, array_like=True):
    """A cluster whose jobs are made little by little, and of which some are not made yet."""

    cluster: int
    owner: str
    made: int
    """The jobs from this number on are not in the queue yet."""
    total: int
    """TotalSubmitProcs."""
    paused: int
    """JobMaterializePaused: 0 or 1."""


class JobAds(msgspec.Struct, frozen=True, kw_only=True):
    """Ads that matched."""

    jobs: list[Ad]
    total: int
    """How many ads these are; with `totals`, how many jobs there are."""
    unmade: list[Unmade] = []
    """Of the selected clusters and owners, whatever the constraint."""
    statuses: dict[str, int] = {}
    """With `totals`: idle, running, held, suspended, removed, completed -> how many, where there are any."""
    more: JobId | None = None
    """With `page`: there may be more jobs after this one; None: that were all."""


SUBMIT = Endpoint(
    "schedd", "submit", Submit, Submitted, callers=(Caller.USER, Caller.JOB), repeat=Repeat.FIRST_ANSWER
)
SUBMIT_FROM_JOB = Endpoint(
    "schedd", "submit_from_job", Submit, Submitted, callers=(Caller.USER,), repeat=Repeat.FIRST_ANSWER
)
"""What the token of a running job submits: only jobs that do not run on the access point."""
ASK_ROOM = Endpoint(
    "schedd", "ask_room", AskRoom, Room, callers=(Caller.USER, Caller.JOB), repeat=Repeat.QUERY
)
ACT = Endpoint("schedd", "act", Act, Acted, callers=(Caller.USER, Caller.JOB), repeat=Repeat.FIRST_ANSWER)
EDIT = Endpoint("schedd", "edit", Edit, Edited, callers=(Caller.USER, Caller.JOB), repeat=Repeat.FIRST_ANSWER)
EDIT_JOBS = Endpoint(
    "schedd", "edit_jobs", EditJobs, Acted, callers=(Caller.USER, Caller.JOB), repeat=Repeat.FIRST_ANSWER
)
QUERY_JOBS = Endpoint(
    "schedd",
    "query_jobs",
    QueryJobs,
    JobAds,
    callers=(Caller.USER, Caller.JOB, Caller.GATEWAY, Caller.DAGMAN, Caller.CE, Caller.SESSIONS),
    repeat=Repeat.QUERY,
)
