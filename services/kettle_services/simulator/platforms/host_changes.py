"""When a host goes and comes."""

from collections.abc import Iterator

from kettle_services.simulator.platforms.hosts import STAYS, Host
from kettle_services.simulator.platforms.lives import Uniform

Changes = Iterator[tuple[int, bool]]
"""When one host goes (False) and comes (True), one after another."""


def changes(host: Host, uniform: Uniform) -> Changes:
    """Of one host; without any it is there all the time."""
    leaves = host.leaves
    if host.joins:
        yield 0, False
        yield host.joins, True
    for down, up in host.failures.spans(host.joins, uniform) if host.failures else ():
        if leaves != STAYS and down >= leaves:
            break
        yield down, False
        if leaves != STAYS and up >= leaves:
            return
        yield up, True
    if leaves != STAYS:
        yield leaves, False
