"""What jobs have used, from the recorded ends of their attempts."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import At
from kettle_wire.rest.route import Moment, Route

UsageGroup = Literal["owner", "group", "project", "machine", "day", "month"]


class GetUsage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Get what attempts have used in a span of time, those that did not finish their job included. An attempt counts in the days in
    which it ran; its job counts on the day on which it ended.
    """

    group_by: Annotated[list[UsageGroup], msgspec.Meta(max_length=2)] = []
    """One or two, not day and month together; none: `owner`."""
    since: Moment | None = None
    """Else 30 days before `until`."""
    until: Moment | None = None
    """Else now."""
    owner: list[Name] = []
    group: list[Name] = []
    """AcctGroup."""
    project: list[Name] = []
    """ProjectName."""
    machine: list[Name] = []
    zone: Annotated[
        str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9+_/-]+$", examples=["Europe/Berlin"])
    ] = "UTC"
    """The time zone of days and months, as in Europe/Berlin."""
    at_least: At | None = None
    """Wait until this is visible."""


class UsageOf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one combination has used; times in hours, of cores where nothing else is said."""

    key: dict[str, str]
    """Empty text: the jobs have none."""
    jobs: int = 0
    """That ran to their end."""
    attempts: int = 0
    wall: float = 0.0
    """Wall-clock hours."""
    core: float = 0.0
    """Wall-clock time times cores."""
    cpu: float = 0.0
    """In which processors worked."""
    good: float = 0.0
    """Of `core`: programs that ran to their end, or up to their last checkpoint."""
    lost: float = 0.0
    """Of `core`: the rest."""
    uncharged: float = 0.0
    """That queues saw attempts take and no machine told of."""


class UsageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What was used."""

    since: Moment
    until: Moment
    rows: list[UsageOf]
    """In the order of their keys."""
    total: UsageOf


GET_USAGE = Route("GET", "/usage", "get_usage", parameters=GetUsage, reply=UsageAnswer, errors=(413, 422))
