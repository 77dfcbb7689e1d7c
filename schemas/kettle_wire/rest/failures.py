"""What goes wrong, grouped by its cause."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.route import Moment, Route

FailureKind = Literal["held", "exit", "signal", "attempt"]


class ListFailures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List causes of failures with how often each occurred, the most frequent first: jobs that are held now, by reason; jobs that ended
    with another exit code than 0, or by a signal; attempts that ended before their job did and that nobody wanted to end, by code.
    """

    kind: list[FailureKind] = []
    """`held`: jobs that were submitted on hold, or whose input files are still being sent, are not among them."""
    owner: list[Name] = []
    schedd: list[Name] = []
    since: Moment | None = None
    """Else a week before `until`."""
    until: Moment | None = None
    """Else now."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A cause."""

    kind: FailureKind
    cause: str
    """In words; numbers, paths and quoted names of hold reasons are replaced by `…`, so that reasons that differ in these are one."""
    code: int | None = None
    """Exit code, number of the signal, VacateReasonCode, or below 1000 HoldReasonCode; absent with jobs that are held now."""
    count: int
    """Jobs; attempts where the kind is that."""
    owners: int
    first: Moment
    """When it was seen first in this time."""
    last: Moment
    example: str
    """A job, `CLUSTER.PROC@SCHEDD`: the last one."""
    said: str
    """What was said of that one."""
    machines: int = 0
    """On how many machines, where that is known."""


class Failures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Causes."""

    since: Moment
    until: Moment
    failures: list[Failure]
    more: int = 0
    """So many causes less frequent are left out."""
    frames: dict[str, int] = {}
    """How far each queue has been read."""


LIST_FAILURES = Route(
    "GET", "/failures", "list_failures", parameters=ListFailures, reply=Failures, headers=("If-None-Match",)
)
