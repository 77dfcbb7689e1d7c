"""The result of an audit, for programs; the command line prints it for people."""

from collections.abc import Iterable
from typing import Final

import msgspec

CHECKS: Final[dict[str, str]] = {
    "positions": "positions follow each other without a gap",
    "frames": "frames follow each other without a gap, each of one moment and one owner",
    "versions": "the versions of each stream follow each other without a gap",
    "events": "every event can be read and is what its type says",
    "times": "the times of frames do not run backwards, but where a clock was an hour wrong",
    "attempts": "no two attempts of a job overlap, and their numbers rise by one",
    "claims": "a claim is granted once, runs one attempt at a time, and ends after it",
    "head": "the shard's head and frame are those of its last event",
    "bus": "the frames on the bus are those of the database",
    "working_set": "the working set is what its events make of it",
    "usage": "usage is the sum of the attempts",
    "archives": "the archives are what their manifests say",
}
"""Every check and its claim; there is one more for each projection, `projection.<name>`."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong."""

    shard: str
    position: int
    """
    Of the event at which it shows; for the check `bus` its frame's number; 0 where there is no such place.
    """
    sentence: str


class Check(msgspec.Struct, kw_only=True):
    """One check over all shards."""

    name: str
    claim: str
    examined: int = 0
    """Events, frames, rows: whatever the check looks at. 0: there was nothing to look at."""
    problems: int = 0
    firsts: list[Problem] = []
    """The first problem of each shard that has one."""
    skipped: list[str] = []
    """Why something was not looked at, which does not make it right."""

    @property
    def first(self) -> Problem | None:
        """The first problem of the first shard that has one."""
        return self.firsts[0] if self.firsts else None

    def found(self, shard: str, position: int, sentence: str) -> None:
        """Count a problem, and keep the first of its shard."""
        self.problems += 1
        if all(known.shard != shard for known in self.firsts):
            self.firsts.append(Problem(shard=shard, position=position, sentence=sentence))


class ShardAudit(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of one shard."""

    shard: str
    frames: int
    events: int
    after: int
    """The frame after which reading began: 0, the whole shard."""
    on_bus: int
    """Frames that were compared with the bus."""


class AuditReport(msgspec.Struct, kw_only=True):
    """All checks, in the order of `CHECKS` and then those of projections, and all shards by name."""

    checks: list[Check]
    shards: list[ShardAudit]

    @classmethod
    def empty(cls) -> "AuditReport":
        """A report of nothing, to be filled."""
        return cls(checks=[Check(name=name, claim=claim) for name, claim in CHECKS.items()], shards=[])

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return not any(check.problems for check in self.checks)

    def check(self, name: str) -> Check:
        """A check by its name; that of a projection is made when it is first asked for."""
        for check in self.checks:
            if check.name == name:
                return check
        made = Check(name=name, claim="the projection is what the events make of it")
        self.checks.append(made)
        return made

    def problems(self, names: Iterable[str]) -> int:
        """How many problems some checks have found so far."""
        return sum(self.check(name).problems for name in names)
