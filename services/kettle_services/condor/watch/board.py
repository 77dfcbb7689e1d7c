"""Where the jobs are that condor_watch_q watches, by group.  Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

Place = Literal["REMOVED", "HELD", "SUSPENDED", "IDLE", "INPUT", "RUN", "OUTPUT", "DONE"]
"""Where a job is, by the word for it in the table."""
Job = tuple[int, int]
"""Cluster and process."""

PLACES: Final[tuple[Place, ...]] = ("REMOVED", "HELD", "SUSPENDED", "IDLE", "INPUT", "RUN", "OUTPUT", "DONE")
"""In the order of the columns."""
_EXITED: Final[frozenset[Place]] = frozenset({"REMOVED", "DONE"})
_AFTER: Final[Mapping[int, Place]] = {
    0: "IDLE", 1: "RUN", 4: "IDLE", 5: "DONE", 7: "IDLE", 9: "REMOVED", 10: "SUSPENDED", 11: "RUN", 12: "HELD", 13: "IDLE",
    24: "IDLE",
}  # fmt: skip
"""Where a job is after an event of its log, by the event's number."""
_TRANSFER: Final = 40
_SHOWN: Final = 2
"""Ids of jobs that are named one by one."""


class Cluster(msgspec.Struct):
    """What is known of a cluster, beside where its jobs are."""

    batch: str = ""
    log: str = ""


class Row(msgspec.Struct):
    """One group of jobs."""

    name: str
    counts: Counter[Place]
    first: Job
    active: str
    """The jobs that have not ended, by their ids."""

    @property
    def total(self) -> int:
        """How many jobs there are."""
        return self.counts.total()

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return all(place in _EXITED for place in self.counts)


class Board:
    """All jobs that are watched."""

    def __init__(self) -> None:
        self.clusters: Final[dict[int, Cluster]] = {}
        self._from_logs: dict[Job, Place] = {}
        self._sources: list[Callable[[], Iterable[tuple[Job, Place]]]] = []

    def add_source(self, jobs: Callable[[], Iterable[tuple[Job, Place]]]) -> None:
        """Jobs that somebody else keeps account of; what a log says of them counts more."""
        self._sources.append(jobs)

    def read(self, number: int, cluster: int, proc: int, log: str, text: str) -> bool:
        """Take an event of a log in; whether a job is elsewhere after it."""
        known = self.clusters.setdefault(cluster, Cluster())
        known.log = known.log or log
        place = _after(number, text)
        if place is None or proc < 0 or self._from_logs.get((cluster, proc)) == place:
            return False
        self._from_logs[cluster, proc] = place
        return True

    def jobs(self) -> dict[Job, Place]:
        """Where each job is."""
        found: dict[Job, Place] = {}
        for source in self._sources:
            found.update(source())
        found.update(self._from_logs)
        return found

    def rows(self, by: str, jobs: Mapping[Job, Place]) -> list[Row]:
        """By `batch`, `cluster` or `log`; groups that have not ended come first, then the older ones."""
        groups: dict[str, list[tuple[Job, Place]]] = {}
        for job, place in jobs.items():
            groups.setdefault(self._group(by, job[0]), []).append((job, place))
        rows = [_row(name, members) for name, members in groups.items()]
        return sorted(rows, key=lambda row: (row.ended, row.first))

    def _group(self, by: str, cluster: int) -> str:
        known = self.clusters.get(cluster, Cluster())
        match by:
            case "cluster":
                return str(cluster)
            case "log":
                return known.log or "(no log)"
            case _:
                return known.batch or f"ID: {cluster}"


def _after(number: int, text: str) -> Place | None:
    if number != _TRANSFER:
        return _AFTER.get(number)
    said = text.lower()
    if "started" not in said:
        return None
    return "INPUT" if "input" in said else "OUTPUT" if "output" in said else None


def _row(name: str, members: Sequence[tuple[Job, Place]]) -> Row:
    active = sorted(job for job, place in members if place not in _EXITED)
    ids = [
        f"{cluster}.{proc}"
        for cluster, proc in (active[:1] + active[-1:] if len(active) > _SHOWN else active)
    ]
    return Row(
        name=name,
        counts=Counter(place for _, place in members),
        first=min(job for job, _ in members),
        active=(" ... " if len(active) > _SHOWN else ", ").join(ids),
    )


# -- when to end ---------------------------------------------------------------------------------------------------------

HOW_MANY: Final[Mapping[str, Callable[[Iterator[bool]], bool]]] = {
    "all": all,
    "any": any,
    "none": lambda those: not any(those),
}
WHERE: Final[Mapping[str, frozenset[Place]]] = {
    "active": frozenset(place for place in PLACES if place not in _EXITED),
    "done": frozenset({"DONE"}),
    "idle": frozenset({"IDLE"}),
    "held": frozenset({"HELD"}),
}


class Ending(msgspec.Struct, frozen=True):
    """A condition under which the command ends."""

    how_many: str
    where: str
    status: int = 0

    def met(self, places: Iterable[Place]) -> bool:
        """Whether it is met; by no jobs at all it never is, as they may be still to come."""
        known = list(places)
        return bool(known) and HOW_MANY[self.how_many](place in WHERE[self.where] for place in known)
