"""
What is broken when: a pure function of a seed and of what there is to break.

Every kind of fault takes its turn, each with a shuffled deck of its targets, so that a long run breaks everything in
every way about equally often, and a short one still does something of each kind.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

import msgspec

Kind = Literal[
    "kill", "pause", "restart", "wipe", "immediate", "fast", "crash", "cycle",
    "cut", "blackhole", "mute", "deaf", "slow", "disk_full", "clock",
]  # fmt: skip

MEANING: Final[Mapping[Kind, str]] = {
    "kill": "SIGKILL",
    "pause": "SIGSTOP, for a moment or longer than any lease, then SIGCONT",
    "restart": "SIGTERM: the service drains, and is started again",
    "wipe": "NATS is killed and JetStream's files are deleted",
    "immediate": "PostgreSQL is told to stop at once (SIGQUIT), without a checkpoint",
    "fast": "PostgreSQL is told to stop, its clients are cut off (SIGINT)",
    "crash": "the master is killed and its services with it, and the pool is brought up again, which takes over the jobs",
    "cycle": "the pool is brought down in good order and up again",
    "cut": "connections of a service to a server are reset, new ones too",
    "blackhole": "no byte passes between a service and a server; connections stay",
    "mute": "no byte of a service reaches the server, the other direction works",
    "deaf": "no byte of the server reaches a service, the other direction works",
    "slow": "every byte between a service and a server is late, and few pass at a time",
    "disk_full": "a file takes all space, for a while",
    "clock": "the clock of one service jumps, and later back; its monotonic clock does not",
}
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
PARTITIONS: Final[frozenset[Kind]] = frozenset({"cut", "blackhole", "mute", "deaf", "slow"})
ALONE: Final[frozenset[Kind]] = frozenset({"crash", "cycle", "disk_full"})
"""While one of these lasts nothing else is broken."""

_LASTING: Final[frozenset[Kind]] = frozenset({*PARTITIONS, "pause", "disk_full", "clock"})
_SHORTEST_S: Final = 0.2
_EVERY: Final = (0.4, 1.6)
_CLOCK_S: Final = (30.0, 900.0)
_DELAY_S: Final = (0.005, 0.1)
_RATE: Final = (20_000.0, 500_000.0)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is broken, and how."""

    number: int
    at: float
    """Seconds after the first moment at which it may begin."""
    kind: Kind
    target: str
    """A service, a server, `service>server`, or a directory."""
    seconds: float = 0.0
    """How long it lasts."""
    offset: float = 0.0
    """`clock`: seconds by which the clock jumps."""
    delay: float = 0.0
    """`slow`: seconds by which every byte is late."""
    rate: float = 0.0
    """`slow`: bytes a second."""
    pick: float = 0.0
    """In [0, 1): which of several processes of that name, where it is only known then how many there are."""

    @property
    def name(self) -> str:
        """What is done to whom."""
        return f"{self.kind}:{self.target}"


Targets = Mapping[Kind, Sequence[str]]


def targeted(kind: Kind, names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names that patterns of `chosen` leave as targets of one kind of fault."""
    split = [pattern.partition(":") for pattern in patterns] or [("*", ":", "*")]
    return [
        name
        for name in names
        if any(fnmatchcase(kind, kinds) and fnmatchcase(name, fit or "*") for kinds, _, fit in split)
    ]


def chosen(targets: Targets, patterns: Sequence[str]) -> dict[Kind, list[str]]:
    """
    The targets that patterns such as `kill`, `pause:schedd*` or `cut:*>nats` leave; no pattern leaves all.

    Raises:
        ValueError: a pattern fits nothing that there is.
    """
    if not patterns:
        return {kind: sorted(names) for kind, names in targets.items() if names}
    kept: dict[Kind, list[str]] = {}
    for pattern in patterns:
        kinds, _, names = pattern.partition(":")
        fit: list[tuple[Kind, str]] = [
            (kind, name)
            for kind, of_kind in targets.items()
            for name in of_kind
            if fnmatchcase(kind, kinds) and fnmatchcase(name, names or "*")
        ]
        if not fit:
            there = ", ".join(f"{kind}:{name}" for kind, of_kind in targets.items() for name in of_kind)
            raise ValueError(f"{pattern!r} fits no fault that can be made here; there are {there}.")
        for kind, name in fit:
            kept.setdefault(kind, []).append(name)
    return {kind: sorted(set(kept[kind])) for kind in KINDS if kind in kept}


def schedule(
    seed: int, targets: Targets, *, seconds: float, every: float = 5.0, longest: float = 8.0
) -> list[Fault]:
    """
    The faults of `seconds` seconds, one in `every` seconds on average; none lasts longer than `longest` seconds.
    """
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    turns = _turns(chance, {kind: sorted(targets[kind]) for kind in KINDS if targets.get(kind)})
    busy: dict[str, float] = {}
    faults: list[Fault] = []
    at = 0.0
    while (at := at + every * chance.uniform(*_EVERY)) < seconds:
        kind, target = next(turns)
        at = max(at, busy.get(target, 0.0))
        if at >= seconds:
            break
        fault = _fault(chance, len(faults) + 1, round(at, 3), kind, target, longest)
        busy[target] = round(fault.at + fault.seconds, 3)
        faults.append(fault)
    return faults


def _turns(chance: random.Random, targets: Mapping[Kind, Sequence[str]]) -> Iterator[tuple[Kind, str]]:
    """The kinds one after the other in an order that changes each time round, each with its next target."""
    decks: dict[Kind, list[str]] = {kind: [] for kind in targets}
    while True:
        for kind in chance.sample(list(targets), len(targets)):
            if not decks[kind]:
                decks[kind] = chance.sample(list(targets[kind]), len(targets[kind]))
            yield kind, decks[kind].pop()


def _fault(chance: random.Random, number: int, at: float, kind: Kind, target: str, longest: float) -> Fault:
    # Drawn for every fault, whether it needs them or not: what one kind draws does not change what follows it.
    spread, sign, size, late, rate, pick = (chance.random() for _ in range(6))
    lasts = _SHORTEST_S * (longest / _SHORTEST_S) ** spread
    return Fault(
        number=number,
        at=at,
        kind=kind,
        target=target,
        seconds=round(lasts, 3) if kind in _LASTING else 0.0,
        offset=round(_between(_CLOCK_S, size) * (1 if sign < 0.5 else -1), 3) if kind == "clock" else 0.0,
        delay=round(_between(_DELAY_S, late), 4) if kind == "slow" else 0.0,
        rate=round(_between(_RATE, rate)) if kind == "slow" else 0.0,
        pick=round(pick, 6),
    )


def _between(limits: tuple[float, float], part: float) -> float:
    low, high = limits
    return low * math.pow(high / low, part)
