"""For which VOs jobs are routed, and how many jobs each may have: the tables `[schedd.vos.NAME]`."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from kettle_wire.people import Shown

_Count = Annotated[int, msgspec.Meta(ge=0)]


class VoLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs of one VO an entrypoint takes."""

    max_jobs: _Count = 100_000
    """In the queue; more are refused when they are submitted."""
    max_idle: _Count = 10_000
    """With a route, that do not run yet; others wait without one."""
    max_running: _Count = 100_000
    """That run: so many have a route and are not on hold, and others wait without one."""


def refusal(owner: str, shown: Shown | None, vos: Mapping[str, VoLimits]) -> str:
    """Why an entrypoint takes no jobs of somebody, with the rule that says so; empty: it does."""
    if shown is None:
        return (
            f"Unknown VO: {owner} has come with no credential of which a rule says the VO, and this entrypoint takes jobs of "
            f"{_named(vos)} only ([schedd.vos])"
        )
    of = f"the credential of {shown.issuer or owner}"
    if not shown.rule:
        return f"Unknown VO: no rule is about {of} (rules of [authorization])"
    if not shown.vo:
        return f"Unknown VO: {of} is of none by the rule {shown.rule}"
    if shown.vo not in vos:
        return (
            f"the VO {shown.vo} is none of this entrypoint, which takes jobs of {_named(vos)} only ([schedd.vos]); {of} is of it by "
            f"the rule {shown.rule}"
        )
    return ""


def _named(vos: Mapping[str, VoLimits]) -> str:
    return ", ".join(sorted(vos))
