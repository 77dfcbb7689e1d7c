"""How long what may take."""

import zlib
from collections.abc import Sequence

import msgspec


class Timers(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, but for `at_once`, `attempts`, `extensions` and the two of the guard."""

    answer: float = 75.0
    """A provisioner has not answered a request for a machine: it is in doubt."""
    visibility: float = 10.0
    """A machine may not be shown by its provider before it is so old, if the provider says nothing else."""
    doubt: float = 600.0
    """What could not be looked for by then is still in doubt, and people are told so."""
    at_once: int = 100
    """So many machines of a provider are asked for at the same time."""
    attempts: int = 5
    """So often a machine is asked for whose provider refuses for a moment."""
    shortest_boot: float = 120.0
    longest_boot: float = 1200.0
    phase: float = 300.0
    """Joining may take so long, and so may validating."""
    extensions: int = 3
    dead: float = 120.0
    """A worker that is not heard of for so long is looked for."""
    orphan_grace: float = 900.0
    """It ends itself after so long without us; a machine that no lease wants is removed after as long."""
    removal: float = 5.0
    """From the first request for a removal to the second; each pause is twice the one before."""
    longest_removal: float = 600.0
    pause: float = 300.0
    """So long an offer is closed for the first time; each pause is twice the one before."""
    longest_pause: float = 3600.0
    guard: float = 600.0
    """So long nothing is given up after many machines seem to be lost at the same time."""
    guard_part: float = 0.3
    """Which part of them that is,"""
    guard_least: int = 3
    """and how many at least."""
    look: float = 2.0
    """From one look at a machine to the next; each pause is half as long again."""
    longest_look: float = 30.0


def doubled(first: float, longest: float, count: int) -> float:
    """The pause after the `count`-th time."""
    return min(longest, first * 2.0 ** min(count - 1, 40))


def jittered(seconds: float, name: str, part: float = 0.1) -> float:
    """About so many seconds, for each name others, and for the same name always the same."""
    return seconds * (1 + part * (zlib.crc32(name.encode()) / 2**31 - 1))


def boot_limit(boots: Sequence[float], expected: float, timers: Timers) -> float:
    """So long a machine may take to boot: three times what 95 of 100 take."""
    known = sorted(boots)
    usual = known[min(len(known) - 1, len(known) * 95 // 100)] if len(known) >= 5 else expected
    return min(timers.longest_boot, max(timers.shortest_boot, 3 * usual))
