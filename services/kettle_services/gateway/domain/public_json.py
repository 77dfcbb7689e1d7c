"""
An event as JSON for public use: without possible secrets, and with numbers that JSON can represent.

Recorded events hold no secret of Kettle's own: of a claim they have only the public part of its id.  But senders choose
the contents of ads, and people put passwords and tokens into the environments of jobs.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from kettle.jobs.lower_names import remembered_by_names
from kettle.jobs.private_attributes import PRIVATE as OF_JOBS
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.events import ClaimGranted, ClusterSubmitted
from kettle_wire.events.codec import Recorded
from kettle_wire.events.route import RouteDecided

PRIVATE: Final = OF_JOBS | {
    "capability", "childclaimids", "claimid", "claimidlist", "claimids", "pairedclaimid", "remoteclaimid", "transferkey",
}  # fmt: skip
"""Attributes that are left out, in lower case: HTCondor's private ones, environments, and what has such in it."""
_PRIVATE_PREFIX: Final = "_condor_priv"
_MACRO: Final = "$("
"""How what a route has computed for itself is called, beside the attributes that it sets."""

_NULLS: Final = (b":null", b",null", b"[null")
"""How a null stands in JSON. Text may have the same in it; that most jobs read and write /dev/null does not count."""

_encode: Final = msgspec.json.Encoder().encode


def to_json(event: Recorded) -> bytes:
    """
    The event as JSON; integers are exact, whatever their size.

    JSON has no NaN and no infinity. In an ad such a number is written as the expression that makes it, elsewhere as 0
    or as the number that is nearest to it.
    """
    event = _public(event)
    data = _encode(event)
    if not any(null in data for null in _NULLS):  # which is what the encoder makes of them
        return data
    return _encode(_finite(msgspec.to_builtins(_expressed(event))))


def is_private(name: str) -> bool:
    """Whether an attribute must not be published."""
    lower = name.lower()
    return lower in PRIVATE or lower.startswith(_PRIVATE_PREFIX)


def _public(event: Recorded) -> Recorded:
    match event:
        case ClusterSubmitted():
            return _public_cluster(event)
        case ClaimGranted(slot_ad=ad) if _has_private(ad):
            return msgspec.structs.replace(event, slot_ad=_public_ad(ad))
        case RouteDecided():
            return _public_route(event)
        case _:
            return event


def _public_cluster(event: ClusterSubmitted) -> ClusterSubmitted:
    if _has_private(event.ad):
        event = msgspec.structs.replace(event, ad=_public_ad(event.ad))
    if _has_private(event.columns):
        shown = [index for index, name in enumerate(event.columns) if not is_private(name)]
        columns = [event.columns[index] for index in shown]
        rows = [[row[index] for index in shown] for row in event.rows]
        event = msgspec.structs.replace(event, columns=columns, rows=rows)
    return event


def _public_route(event: RouteDecided) -> RouteDecided:
    """A macro may be made of any attribute of the job."""
    trace = [step for step in event.trace if not is_private(step.name) and not step.name.startswith(_MACRO)]
    return msgspec.structs.replace(event, attributes=_public_ad(event.attributes), trace=trace)


def _has_private(names: Mapping[str, object] | Sequence[str]) -> bool:
    return _any_private(tuple(names))


@remembered_by_names
def _any_private(names: tuple[str, ...]) -> bool:
    return any(map(is_private, names))


def _public_ad(ad: Ad) -> Ad:
    return {name: value for name, value in ad.items() if not is_private(name)}


def _expressed(event: Recorded) -> Recorded:
    match event:
        case ClusterSubmitted():
            rows = [[_expression(value) for value in row] for row in event.rows]
            return msgspec.structs.replace(event, ad=_expressed_ad(event.ad), rows=rows)
        case ClaimGranted():
            return msgspec.structs.replace(event, slot_ad=_expressed_ad(event.slot_ad))
        case _:
            return event


def _expressed_ad(ad: Ad) -> Ad:
    return {name: _expression(value) for name, value in ad.items()}


def _expression(value: Scalar) -> Scalar:
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return Expr('real("NaN")' if math.isnan(value) else f'real("{"-" if value < 0 else ""}INF")')


def _finite(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return 0.0
        case float() if math.isinf(value):
            return math.copysign(sys.float_info.max, value)
        case list():
            return [_finite(one) for one in value]  # pyright: ignore[reportUnknownVariableType] - of JSON
        case dict():
            return {key: _finite(one) for key, one in cast("dict[str, Any]", value).items()}
        case _:
            return value
