"""
For how long jobs occupy a slot, by what is recorded of their attempts.

An attempt counts from when its job was given a claim until its end was recorded, so what moving files and starting the program
took is in it.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kettle_services.simulator.domain.clock import US
from kettle_wire.ads import Scalar
from kettle_wire.jobs import JobId

_ASKED: Final = ("AllowedExecuteDuration", "AllowedJobDuration")
_SAMPLE: Final = 999
"""
The number of the newest attempts of a cluster or of an owner from which the duration of others is estimated.
"""


class RunTimes:
    """Of the jobs of one schedd; times in microseconds."""

    def __init__(self) -> None:
        self.began: dict[str, int] = {}
        """When the attempt of each job began that has one, by the job's stream."""
        self._took: dict[str, int] = {}
        self._tried: set[str] = set()
        self._saves: dict[str, tuple[int, int]] = {}
        self._owners: dict[int, str] = {}
        self._of_cluster: dict[int, deque[int]] = {}
        self._of_owner: dict[str, deque[int]] = {}
        self.estimated: set[str] = set()
        """Jobs that never ran, whose duration was estimated from others on request."""
        self.endless: set[str] = set()
        """Jobs without any estimate of their duration."""

    # -- updates ------------------------------------------------------------------------------------------------

    def owned(self, cluster: int, owner: str) -> None:
        """A cluster was submitted."""
        self._owners[cluster] = owner

    def note(self, kind: str, stream: str, at: int, number: int = 0) -> None:
        """An event of a job, by the type without its version; `number` of a checkpoint."""
        match kind:
            case "job.assigned":
                self.began[stream] = at
                self._tried.add(stream)
            case "job.checkpointed" if stream in self.began and number:
                self._saves[stream] = number, at - self.began[stream]
            case "job.completed":
                self._ended(stream, at)
            case "job.vacated":
                self.began.pop(stream, None)
            case _:
                pass

    def _ended(self, stream: str, at: int) -> None:
        began = self.began.pop(stream, None)
        if began is None:
            return
        took = self._took[stream] = at - began
        cluster = int(stream.removeprefix("job/").partition(".")[0])
        self._of_cluster.setdefault(cluster, deque(maxlen=_SAMPLE)).append(took)
        self._of_owner.setdefault(self._owners.get(cluster, ""), deque(maxlen=_SAMPLE)).append(took)

    def forget(self) -> None:
        """What is over by now is of no more interest: the period begins."""
        self._took.clear()
        self._tried = set(self.began)
        self._saves = {stream: save for stream, save in self._saves.items() if stream in self.began}

    # -- what it comes to --------------------------------------------------------------------------------------------

    def of(self, job: JobId, stream: str, ad: Callable[[], Mapping[str, Scalar]], startd: str) -> int | None:
        """
        For how long the job occupies a slot, of whatever machine; None: until somebody ends it, or the period is over.

        What it took, if it ran to its end. If it began and never ended, what it was allowed to take. If it never began, the
        median of its cluster, else of its owner, else what it was allowed to take.
        """
        if stream in self._took:
            return self._took[stream]
        if stream not in self._tried:
            others = self._of_cluster.get(job.cluster) or self._of_owner.get(
                self._owners.get(job.cluster, "")
            )
            if others:
                self.estimated.add(stream)
                return sorted(others)[(len(others) - 1) // 2]
        said = ad()
        asked = [value for name in _ASKED if isinstance(value := said.get(name), int) and value > 0]
        if not asked:
            self.endless.add(stream)
            return None
        return min(asked) * US

    def saved(self, stream: str, elapsed: int) -> int:
        """
        How much of an attempt is not lost: it is saved as often as its job's checkpoints were recorded, on average.
        """
        number, until = self._saves.get(stream, (0, 0))
        return elapsed // (until // number) * (until // number) if number and until >= number else 0
