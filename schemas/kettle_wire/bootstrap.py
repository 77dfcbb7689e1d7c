"""
What a machine is told that a provider has made: it is the file of `kettle worker run --bootstrap FILE`, in JSON.

User data of machines can be read by others, so nothing here is good for long: the token admits one machine, once, under the
name of its lease.  All times are relative, because the clock of a new machine may be wrong.
"""

from typing import Annotated, TypeAlias

import msgspec

from kettle_wire.leases import LeaseId

Span = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86_400.0)]
"""Seconds."""
Setting: TypeAlias = bool | int | float | str | list[str] | dict[str, bool | int | float | str]


class Examination(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a machine proves of itself before it takes a job."""

    disk: Annotated[int, msgspec.Meta(ge=0)] = 0
    """MB that have to be free where jobs work."""
    isolation: bool = False
    """Control groups have to limit memory, and of a machine of root's jobs have to have directories of their own."""
    containers: bool = False
    """A container has to run."""
    gpus: Annotated[int, msgspec.Meta(ge=0)] = 0
    """So many have to be found."""
    skew: Span = 86_400.0
    """So far its clock may differ from the pool's, in seconds: the pool counts on nobody's clock, certificates do."""
    script: Annotated[str, msgspec.Meta(max_length=65_536)] = ""
    """Text of a program of the site, with its `#!` line; another status than 0 fails, and its last words are told."""
    script_timeout: Span = 120.0


class Notices(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where it is announced that the machine will be taken away, besides by SIGTERM."""

    file: str = ""
    """It is announced as soon as this file is there."""
    url: str = ""
    """It is announced as soon as this answers with 200, as the metadata of virtual machines do."""
    headers: dict[str, str] = {}
    """What is sent there, as `Metadata-Flavor: Google`."""
    token_url: str = ""
    """Where a token for it is made first, as EC2's metadata wants it (version 2)."""
    says: str = ""
    """What the answer has to say, such as `TRUE`; empty: that there is one is enough."""
    interval: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 5.0
    """Seconds between two looks."""
    warning: Span = 120.0
    """So long before it is taken away it is announced, if the notice does not say it."""


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
