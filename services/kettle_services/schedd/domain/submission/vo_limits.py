"""
For which VOs jobs are routed, and how many jobs and how much of the spool each may have: the tables `[schedd.vos.NAME]`.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from kettle_wire.people import Shown

_Count = Annotated[int, msgspec.Meta(ge=0)]
_SHOWN: Final = 3
_THOUSAND: Final = 1000.0


class VoLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs of one VO an entrypoint takes."""

    max_jobs: _Count = 100_000
    """In the queue; more are refused when they are submitted."""
    max_idle: _Count = 10_000
    """With a route, that do not run yet; others wait without one."""
    max_running: _Count = 100_000
    """That run: so many have a route and are not on hold, and others wait without one."""
    max_spool: _Count = 0
    """
    Bytes of the files that its jobs have in the spool; while they have more no more jobs with files are taken. 0: as many as there is room for.
    """


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


def over_quota(vo: str, spooled: int, by_cluster: Counter[int], most: int) -> str:
    """Why a VO may send no more files now, and what to delete; empty: it may."""
    if not most or spooled <= most:
        return ""
    largest = ", ".join(f"{cluster} ({_size(size)})" for cluster, size in by_cluster.most_common(_SHOWN))
    return (
        f"the files of the VO {vo} take {_size(spooled)} of the spool, and may take {_size(most)} (max_spool of [schedd.vos.{vo}]): fetch "
        f"the results of its jobs that have ended (condor_transfer_data), or remove jobs (condor_rm); its largest clusters are {largest}"
    )


def _size(size: int) -> str:
    number, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if number < _THOUSAND or unit == "TB":
            break
        number /= _THOUSAND
    return f"{number:.3g} {unit}" if unit != "B" else f"{size} B"


def _named(vos: Mapping[str, VoLimits]) -> str:
    return ", ".join(sorted(vos))
