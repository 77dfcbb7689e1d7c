"""What people do with jobs of others, as only super users of the queue may, on its way to the record."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kettle.bus.ports import Auditor, RefusedError
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import FactoryOutcome, Outcome
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity


def nothing() -> None:
    """There is nothing to tell."""


class DeedsForOthers:
    """Tells of them."""

    def __init__(self, queue: Queue, auditor: Auditor | None) -> None:
        """`auditor` None: nobody wants to know."""
        self._queue = queue
        self._auditor = auditor

    def of(
        self,
        caller: Identity,
        endpoint: Endpoint[Any, Any],
        what: str,
        outcomes: Counter[tuple[int, Outcome]],
        factories: Sequence[FactoryOutcome] = (),
    ) -> Callable[[], None]:
        """
        What is to be called after the commit; whose the jobs are is looked up now, because they may be gone then.

        `outcomes`: how many jobs of which cluster have which.
        """
        if self._auditor is None:
            return nothing
        jobs = Counter(outcomes)
        jobs.update({(each.cluster, each.outcome): each.unmade for each in factories})
        done, denied = Counter[str](), Counter[str]()
        for (cluster, outcome), number in jobs.items():
            owner = self._owner(cluster)
            if outcome == "done" and owner != caller.name:
                done[owner] += number
            elif outcome == "denied":
                denied[owner] += number
        if not done and not denied:
            return nothing
        return partial(self._tell, self._auditor, caller, endpoint, what, done, denied)

    def _owner(self, number: int) -> str:
        cluster = self._queue.clusters.get(number)
        # Of very many jobs the first are recorded, and maybe gone, before the last are looked at.
        return cluster.submitted.owner if cluster is not None else "somebody"

    def _tell(
        self,
        auditor: Auditor,
        caller: Identity,
        endpoint: Endpoint[Any, Any],
        what: str,
        done: Counter[str],
        denied: Counter[str],
    ) -> None:
        schedd = self._queue.schedd
        if done:
            auditor.note(caller.name, f"{endpoint.role}.{endpoint.verb}", schedd, f"{what}: {_jobs(done)}")
        if denied:
            refusal = RefusedError(RefusalCode.DENIED, f"may not {what}: {_jobs(denied)}")
            auditor.denied(endpoint, schedd, caller, refusal)


def _jobs(of: Counter[str]) -> str:
    return ", ".join(f"{number} job{'s' * (number != 1)} of {owner}" for owner, number in sorted(of.items()))
