"""Ads that are more than a map: what a schedd asks for, and what a startd keeps private."""

import re
from typing import Annotated, Final

import msgspec

from kettle_wire.ads.types import Ad

Used = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
"""A finite number, so that a sum of such values is a number."""
CONDOR_VERSION: Final = "$CondorVersion: 25.0.1 2026-01-01 BuildID: Kettle $"
"""The version of HTCondor that clients may take this for, as HTCondor writes it."""
_NO_NAME: Final = re.compile(r"\W", re.ASCII)


def prefix_of(daemon: str) -> str:
    """`SCHEDD_AP1_2` for `schedd.ap1#2`: with what its attributes begin in the ad of its master."""
    return _NO_NAME.sub("_", daemon).upper()


class ResourceRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Idle jobs of one autocluster: jobs that no machine policy can tell apart."""

    autocluster: int
    count: int
    ad: Ad
    """The first job of the autocluster in queue order; it stands for all."""
    nodes: int = 1
    """Slots that each of these jobs needs at the same time: it gets all of them, or none."""
    more: int = 0
    """Slots that each of them takes besides, as many as there are at that time."""


class SubmitterAd(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of one submitter at one schedd, requests in the submitter's order of priority."""

    name: str
    schedd: str
    idle: int
    running: int
    held: int
    requests: list[ResourceRequest]
    limits: dict[str, Used] = {}
    """How much of which concurrency limits its claims here use, with those that are being asked for."""
    cycle: int = 0
    """The last cycle whose matches for it are among these, or came to nothing."""
    claims: int = 0
    """How many slots of this pool it has, with those that are being asked for; 0 also from an older schedd."""
    flocked: int = 0
    """How many of its jobs run in other pools; they are not among the `running` ones."""
    flocks: bool = False
    """Whether other pools may take its jobs."""
    tag: str = ""
    """
    In another pool than the schedd's own: the name under which its schedd calls that pool (SubmitterTag).
    """
    machine: str = ""
    """The host of the schedd; empty: an older one sent this."""
    started: int = 0
    """When the schedd began to number its updates, in seconds since 1970 (DaemonStartTime)."""
    sequence: int = 0
    """
    Which update of this ad it is since then, from 1 on (UpdateSequenceNumber); 0: they are not numbered.
    """


class SlotSecret(msgspec.Struct, frozen=True, kw_only=True):
    """What a negotiator hands to a schedd with a match of this slot."""

    startd: str
    capability: str
