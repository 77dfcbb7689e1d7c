"""What a collector is asked."""

from typing import Annotated, Final

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.endpoint import Caller, Endpoint, Repeat
from kettle_wire.jobs import Number


class QueryAds(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ads of one type (`Machine`, `Scheduler`, `Submitter`, …; empty: any) that meet a constraint."""

    type: str = ""
    constraint: str = ""
    projection: list[str] = []
    limit: Number = 0
    after: tuple[str, str] | None = None
    """From where on: the `rest` of the page before."""
    forwarded: bool = False
    """Those too that other pools forward; they have `ForwardedFrom`."""


class Ads(msgspec.Struct, frozen=True, kw_only=True):
    """A page of ads, in the order of their names."""

    ads: list[Ad]
    rest: tuple[str, str] | None = None
    """Ask again from here on, there may be more; None: there are no more."""


QUERY_ADS = Endpoint(
    "collector",
    "query_ads",
    QueryAds,
    Ads,
    callers=(Caller.USER, Caller.JOB, Caller.SHADOW, Caller.GATEWAY),
    repeat=Repeat.QUERY,
)


READERS: Final = "readers"
"""The name under which every collector makes readers."""


class MakeReader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have a consumer of a stream, to be read from by its name: published events of one's own jobs, or as a visitor one's reports.

    JetStream itself would deliver messages to any subject that the request for a consumer names; so people and visitors ask for one
    here.
    """

    stream: Annotated[str, msgspec.Meta(max_length=256)]
    subject: Annotated[str, msgspec.Meta(max_length=512, pattern=r"^[!-~]+$")]
    """A filter."""
    name: Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[A-Za-z0-9_=-]+$")]
    """One that nobody can guess; of a durable consumer the one that is the caller's."""
    durable: bool = False
    """It outlives its reader, and remembers what was acknowledged."""
    batch: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 256
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Begin with the message behind this one; 0: with the first."""
    since: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """Begin with the first message at that time or later, seconds since the epoch; 0: `after` says where."""


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """It is there."""

    pending: int
    """Messages that wait for it."""


MAKE_READER = Endpoint(
    "collector",
    "make_reader",
    MakeReader,
    Reader,
    callers=(Caller.USER, Caller.VISITOR),
    repeat=Repeat.HARMLESS,
)
