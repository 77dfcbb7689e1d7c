"""
What happened, the replay without the change, and the replay with it: side by side, for people and programs.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import msgspec

from kettle.matchmaking import ROOT, Tree
from kettle_services.simulator.domain.clock import US
from kettle_services.simulator.domain.machine import cores
from kettle_services.simulator.domain.period import Period, really
from kettle_services.simulator.domain.pool_rules import PoolRules
from kettle_services.simulator.domain.simulation import PeriodSimulation, Watch, nobody
from kettle_services.simulator.domain.submitter_sums import Sums, Tally, quantile
from kettle_services.simulator.garbage import seldom_collected

_POINTS = 240


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One submitter or accounting group."""

    name: str
    group: str
    """The submitter's group by the changed settings; empty: none."""
    recorded: Sums
    replayed: Sums
    changed: Sums


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """How near the replay without a change is to what is recorded."""

    begun_recorded: int
    begun_replayed: int
    begun_both: int
    """Jobs that began in the period both really and in the replay."""
    apart_median: float | None
    apart_p90: float | None
    """How far these two starts of a job are apart, in seconds."""
    same_order: float | None
    """
    Of all pairs of jobs that began one after the other in the record, the part that does so in the replay.
    """
    core_hours_recorded: float
    core_hours_replayed: float


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """How a replay went."""

    cycles: int
    """Negotiation cycles."""
    refused: int
    """Matches that no startd would have accepted."""
    machines: int
    cores: int
    """Of all machines that were there at some time."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Times are in seconds since the epoch."""

    since: float
    until: float
    step: float
    latency: float
    """What it takes from when a match has become possible until the slot is claimed, by the record."""
    changes: list[str]
    """What is different, a sentence each."""
    submitters: list[Compared]
    groups: list[Compared]
    total: Compared
    trust: Trust
    replayed: Played
    changed: Played
    estimated: int
    """Jobs that never ran, whose duration is estimated from others of the same cluster or owner."""
    endless: int
    """Jobs of which nothing tells: they end when somebody ends them."""
    guessed: int
    """Machines of which only cores and memory are recorded."""
    times: list[float]
    usage: dict[str, dict[str, list[float]]]
    """recorded, replayed, changed -> submitter -> what it had at these times, in slot weights."""


@seldom_collected()
def compare(
    period: Period,
    rules: PoolRules,
    other: Period,
    changed: PoolRules,
    *,
    changes: Sequence[str],
    step: int,
    watch: Sequence[Watch] = (),
) -> WhatIf:
    """
    Play a period by its rules, and with other machines and rules.

    `step` is the minimum number of microseconds between cycles; `watch` receives the progress of the two replays.
    """
    seen = [*watch, nobody, nobody]
    real = really(period)
    without = PeriodSimulation(period, rules, step=step, watch=seen[0])
    base = without.run()
    changing = PeriodSimulation(other, changed, step=step, watch=seen[1])
    then = changing.run()
    tallies = {"recorded": real, "replayed": base, "changed": then}
    names = sorted({name for tally in tallies.values() for name in tally.submitters})
    tree = changed.groups.tree
    members = _members(names, tree)
    apart = (period.until - period.since) / (_POINTS - 1)
    moments = [period.since + round(apart * number) for number in range(_POINTS)]
    return WhatIf(
        since=period.since / US,
        until=period.until / US,
        step=step / US,
        latency=period.latency / US,
        changes=list(changes),
        submitters=_compared({name: [name] for name in names}, tallies, tree),
        groups=_compared(members, tallies, None),
        total=_compared({"all": names}, tallies, None)[0],
        trust=trust(real, base),
        replayed=_played(without, period),
        changed=_played(changing, other),
        estimated=sum(len(works.estimated) for works in period.works.values()),
        endless=sum(len(works.endless) for works in period.works.values()),
        guessed=sum(period.machines[name].guessed for name in _came(period)),
        times=[moment / US for moment in moments],
        usage={case: {name: tally.usage(name, moments) for name in names} for case, tally in tallies.items()},
    )


def _members(names: Sequence[str], tree: Tree) -> dict[str, list[str]]:
    """
    All submitters of each accounting group, with those of groups below it; nothing if there are no groups.
    """
    members: dict[str, list[str]] = {}
    if len(tree) > 1:
        for name in names:
            for number in tree.upward(tree.number_of(name)):
                group = tree.groups[number].name
                if number or not tree.number_of(name):
                    members.setdefault(group, []).append(name)
    return dict(sorted(members.items()))


def _compared(
    members: Mapping[str, Sequence[str]], tallies: Mapping[str, Tally], tree: Tree | None
) -> list[Compared]:
    sums = {case: tally.sums(members) for case, tally in tallies.items()}
    found: list[Compared] = []
    for name in members:
        group = tree.groups[tree.number_of(name)].name if tree is not None else ROOT
        found.append(
            Compared(
                name=name,
                group="" if group == ROOT else group,
                recorded=sums["recorded"][name],
                replayed=sums["replayed"][name],
                changed=sums["changed"][name],
            )
        )
    return found


def _came(period: Period) -> list[str]:
    joined = {machine for one in period.happenings if (machine := getattr(one.event, "machine", None))}
    return sorted({*period.there, *joined} & period.machines.keys())


def _played(simulation: PeriodSimulation, period: Period) -> Played:
    came = [period.machines[name] for name in _came(period)]
    return Played(
        cycles=simulation.cycles, refused=simulation.running.refused, machines=len(came), cores=cores(came)
    )


def trust(real: Tally, base: Tally) -> Trust:
    """How far one may believe the replay."""
    both = [job for job in real.starts if job in base.starts]
    apart = sorted(abs(real.starts[job] - base.starts[job]) for job in both)
    return Trust(
        begun_recorded=len(real.starts),
        begun_replayed=len(base.starts),
        begun_both=len(both),
        apart_median=quantile(apart, 0.5),
        apart_p90=quantile(apart, 0.9),
        same_order=same_order([(real.starts[job], base.starts[job]) for job in both]),
        core_hours_recorded=real.core_hours,
        core_hours_replayed=base.core_hours,
    )


def same_order(pairs: Sequence[tuple[int, int]]) -> float | None:
    """
    Of all pairs that the first numbers put in an order, the part that the second ones put in the same one, or in none.

    None: there is no such pair.  Counted by merging, so in n log n.
    """
    ordered = [second for _, second in sorted(pairs)]
    ties = sorted(first for first, _ in pairs)
    whole = len(pairs) * (len(pairs) - 1) // 2 - _tied(ties)
    return 1.0 - _inversions(ordered)[0] / whole if whole else None


def _tied(ordered: Sequence[int]) -> int:
    """Pairs of equal numbers."""
    runs, run = 0, 0
    for before, after in pairwise(ordered):
        run = run + 1 if before == after else 0
        runs += run
    return runs


def _inversions(numbers: list[int]) -> tuple[int, list[int]]:
    """How many pairs are the wrong way round, and the numbers in order."""
    if len(numbers) < 2:
        return 0, numbers
    middle = len(numbers) // 2
    before, left = _inversions(numbers[:middle])
    after, right = _inversions(numbers[middle:])
    count, merged, place = before + after, list[int](), 0
    for number in left:
        while place < len(right) and right[place] < number:
            merged.append(right[place])
            place += 1
        merged.append(number)
        count += place
    return count, [*merged, *right[place:]]
