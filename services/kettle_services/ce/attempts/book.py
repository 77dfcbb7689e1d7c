"""The claims of batch systems as they are recorded, and telling their schedds what is."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from kettle_services.ce.attempts.reports import Reporting
from kettle_services.ce.domain.attempts.attempt import BatchClaim, Run
from kettle_services.ce.domain.attempts.claims import STREAM, Changes
from kettle_services.ce.domain.attempts.endings import grid_status
from kettle_wire.attempts import Usage
from kettle_wire.batch import BatchState
from kettle_wire.events import Event
from kettle_wire.events.batch import BatchEvent
from kettle_wire.worker_reports import (
    Body,
    Continued,
    FinalReport,
    Measured,
    Report,
    Started,
    Suspended,
)


class Recorder(Protocol):
    """Folds and records events; the future is done after their commit."""

    def __call__(self, changes: Sequence[tuple[str, Event]]) -> Awaitable[int]:
        """Each event with its stream."""
        ...


class Book:
    """All claims, and the only way in which they change: recorded first, then told."""

    def __init__(
        self,
        claims: Mapping[str, BatchClaim],
        record: Recorder,
        reporting: Reporting,
        names: Callable[[Run, str], str],
    ) -> None:
        """`claims` are what the record folds; `names` gives GridJobId of a job of a batch system."""
        self.claims: Final = claims
        self._record: Final = record
        self._reporting: Final = reporting
        self._names: Final = names
        self._sequence = time.time_ns() // 1000
        self.changed: Final[list[Callable[[BatchClaim | None, BatchClaim | None], None]]] = []
        """
        Who is called after the commit of what has happened to a claim, with it before and after; None: it is none.
        """

    async def record(self, changes: Changes) -> None:
        """Record, commit, and tell."""
        if not changes:
            return
        before = {claim: self.claims.get(claim) for claim, _ in changes}
        done = self._record([(STREAM + claim, event) for claim, event in changes])
        after = {claim: self.claims.get(claim) for claim in before}
        await done
        for claim, each in after.items():
            self._tell(before[claim], each)
            for listener in self.changed:
                listener(before[claim], each)

    async def of(self, claim: str, events: Sequence[BatchEvent]) -> None:
        """Record what happened to one claim."""
        await self.record([(claim, event) for event in events])

    def _tell(self, before: BatchClaim | None, after: BatchClaim | None) -> None:
        run = after.run if after is not None else None
        if after is None or run is None or not run.id:
            return
        then = before.run if before is not None else None
        was = then.state if then is not None else None
        if run.state is BatchState.RUNNING and run.began and not (then is not None and then.began):
            self.send(after, Started(pid=0, at=run.began))
        if run.state is BatchState.SUSPENDED and was is not BatchState.SUSPENDED:
            self.send(after, Suspended(at=time.time()))
        if run.state is BatchState.RUNNING and was is BatchState.SUSPENDED:
            self.send(after, Continued(at=time.time()))
        if then is None or (then.id, then.state, then.words) != (run.id, run.state, run.words):
            self.send(after, Measured(usage=Usage(), told=self.told(after, run)))

    def told(self, claim: BatchClaim, run: Run) -> dict[str, str]:
        """What the ad of a job says of where it is; nothing of one that the batch system never had."""
        if not run.id:
            return {}
        return {"GridJobId": f'"{self._names(run, claim.system)}"', "GridJobStatus": f'"{grid_status(run)}"'}

    def send(self, claim: BatchClaim, body: Body) -> None:
        """Send a report about the job of a claim, which is over with it."""
        run = claim.run
        assert run is not None
        self._sequence += 1
        self._reporting.send(
            Report(
                claim=claim.claim,
                attempt=run.attempt,
                sequence=self._sequence,
                job=run.job,
                body=body,
                trace=run.trace,
                closing=isinstance(body, FinalReport),
            )
        )


def now() -> float:
    """Seconds since the epoch: deadlines outlive this process, and this boot."""
    return time.time()


def grid_job_id(kind: str, host: str, run: Run) -> str:
    """As HTCondor writes it: `batch slurm HOST slurm/YYYYMMDD/ID`."""
    day = time.strftime("%Y%m%d", time.gmtime(run.since))
    return f"batch {kind} {host} {kind}/{day}/{run.id}"
