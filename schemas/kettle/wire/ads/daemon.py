"""Ads that are more than a map: what a schedd asks for, and what a startd keeps private."""

import re
from typing import Final

import msgspec

from kettle.wire.ads.types import Ad

_NO_NAME: Final = re.compile(r"\W", re.ASCII)


def prefix_of(daemon: str) -> str:
    """`SCHEDD_AP1_2` for `schedd.ap1#2`: with what its attributes begin in the ad of its master."""
    return _NO_NAME.sub("_", daemon).upper()


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Idle jobs of one autocluster: jobs that no machine policy can tell apart."""

    autocluster: int
    count: int
    ad: Ad
    """The first job of the autocluster in queue order; it stands for all."""


class SubmitterAd(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of one submitter at one schedd, requests in the submitter's order of priority."""

    name: str
    schedd: str
    idle: int
    running: int
    held: int
    requests: list[ResourceRequest]


class SlotSecret(msgspec.Struct, frozen=True, kw_only=True):
    """What a negotiator hands to a schedd with a match of this slot."""

    startd: str
    capability: str
