"""
What a machine that a provider has made proves of itself before it takes a job, and where it learns that it will be taken away.
"""

from typing import Annotated

import msgspec

Span = Annotated[float, msgspec.Meta(ge=0, le=10 * 365 * 86_400.0)]
"""Seconds."""


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
