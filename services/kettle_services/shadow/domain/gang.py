"""
How a job of several nodes ends: the first node whose end decides, decides for all.

Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kettle_wire.attempts import AttemptResult, Ending, Usage
from kettle_wire.codes import VacateCode

_OTHERS: Final = 1
"""The subcode of what is ended because of another node. Such an end decides nothing, even if it is heard of first."""


def with_others(why: str) -> Ending:
    """What ends a node whose job has ended on another one."""
    return Ending(code=VacateCode.ScheddVacate, subcode=_OTHERS, reason=why)


def _decides(number: int, result: AttemptResult, *, waits_for_all: bool) -> bool:
    ending = result.ending
    if ending is not None:
        return (ending.code, ending.subcode) != (VacateCode.ScheddVacate, _OTHERS)
    return number == 0 and not waits_for_all


def decided(results: Mapping[int, AttemptResult], nodes: int, *, waits_for_all: bool) -> AttemptResult | None:
    """
    How the attempt ends, by the results of the nodes that have ended, in the order in which they came; None: it goes on.

    A node that was ended (evicted, lost, held) ends all. Of programs that ran to their ends that of node 0 decides: at once,
    or with `waits_for_all` when all others have ended too.
    """
    for number, result in results.items():
        if _decides(number, result, waits_for_all=waits_for_all):
            return result
    return results[0] if len(results) == nodes else None


def together(usages: Iterable[Usage]) -> Usage:
    """What all nodes used: they ran side by side, each on a machine of its own."""
    each = list(usages)
    return Usage(
        wall=max(usage.wall for usage in each),
        user_cpu=sum(usage.user_cpu for usage in each),
        system_cpu=sum(usage.system_cpu for usage in each),
        memory_kib=max(usage.memory_kib for usage in each),
        disk_kib=max(usage.disk_kib for usage in each),
        sent=sum(usage.sent for usage in each),
        received=sum(usage.received for usage in each),
    )
