"""
What a machine is told that a provider has made: it is the file of `kettle worker run --bootstrap FILE`, in JSON.

User data of machines can be read by others, so nothing here is good for long: the token admits one machine, once, under the
name of its lease.  All times are relative, because the clock of a new machine may be wrong.
"""

from typing import Annotated, TypeAlias

import msgspec

from kettle_wire.examination import Examination, Notices, Span
from kettle_wire.leases import LeaseId

Setting: TypeAlias = bool | int | float | str | list[str] | dict[str, bool | int | float | str]


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a new machine is told."""

    url: str
    """Of iam, where it joins."""
    token: str
    """A join token for one machine of this name; secret, of short life."""
    lease: LeaseId
    deployment: str
    pool: str = ""
    """The pool of workers that it belongs to."""
    life: Annotated[float, msgspec.Meta(gt=0, le=10 * 365 * 86_400.0)]
    """Seconds until it ends itself, whatever happens."""
    settings: dict[str, Setting] = {}
    """Of its startd: the table `[startd]` of `kettle.toml`."""
    examination: Examination = Examination()
    notices: Notices = Notices()
    join_within: Span = 300.0
    """Seconds in which it has to have joined."""
    renewal: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 15.0
    """Seconds between two renewals, as long as the scaler says no other number."""
    orphan_grace: Span = 900.0
    """After so long without a renewal it takes no more jobs."""
    finish: Span = 3600.0
    """So long its jobs may go on then."""
    hurry: Span = 30.0
    """Before the end of its life jobs have so long to end when they are asked to."""
    back_off: Span = 60.0
    """So long a machine that failed its examination stays before it ends: else one that is broken would be replaced at once,
    again and again."""
    quarantine_after: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 5
    """So many different jobs in a row that fail within seconds make it take no more (`quarantine_after` of the startd); 0: none do."""
    shutdown: bool = False
    """At the end it switches the machine off, which takes root."""
