"""What a batch system is told about jobs that it has: that they are to end, to stop, or to go on."""

import logging
from typing import Final

import msgspec

from kettle.faults import fault_point
from kettle_services.ce.attempts.book import now
from kettle_services.ce.batch.port import BatchSystem, Job, NotTakenError, UnavailableError
from kettle_services.ce.domain.attempts.attempt import Run, Stage
from kettle_wire.batch import BatchState

_log: Final = logging.getLogger(__name__)
_AGAIN_S: Final = 60.0
"""So long an order has to take effect, before it is given again to a job that is in the same state."""


class _Given(msgspec.Struct, frozen=True):
    """An order that was given."""

    order: str
    id: str
    """Of the job there: it may be followed by another number since."""
    state: BatchState | None
    """Of the job, as it was known then."""
    at: float
    there: bool = True
    """False: it was answered that there is no such job."""


class Orders:
    """Those that were given."""

    def __init__(self, system: BatchSystem, name: str) -> None:
        self._system: Final = system
        self._name: Final = name
        self._given: dict[str, _Given] = {}
        """By claims."""

    def due(self, claim: str, run: Run) -> str:
        """
        What the batch system is to be told now about a job; empty: nothing.

        What it was told of a job that waited is no order to one that runs: it may have begun while it was told.
        """
        order = _wanted(run) if run.stage is Stage.SUBMITTED else ""
        given = self._given.get(claim)
        known = given is not None and (given.order, given.id, given.state) == (order, run.id, run.state)
        return "" if known and given is not None and now() - given.at < _AGAIN_S else order

    def is_gone(self, claim: str, run: Run) -> bool:
        """Whether a job was to be removed, and the batch system has answered that it has none."""
        given = self._given.get(claim)
        return given is not None and (given.order, given.id, given.there) == ("cancel", run.id, False)

    def forget(self, claim: str) -> None:
        """The claim is over."""
        self._given.pop(claim, None)

    async def give(self, claim: str, order: str, run: Run) -> None:
        """Tell it; what it does not do now, it is told again."""
        self._given[claim] = _Given(order, run.id, run.state, now())
        try:
            match order:
                case "cancel":
                    fault_point("batch.ordering")
                    there = await self._system.cancel(job_of(run))
                    if (given := self._given.get(claim)) is not None:  # the claim may be over by now
                        self._given[claim] = msgspec.structs.replace(given, there=there)
                    fault_point("batch.ordered")
                case "hold":
                    await self._system.hold(job_of(run), running=run.state is BatchState.RUNNING)
                case _:
                    await self._system.release(job_of(run), running=run.state is BatchState.SUSPENDED)
        except (UnavailableError, NotTakenError) as error:
            _log.warning(
                "an order is not carried out",
                extra={"system": self._name, "job": str(run.job), "order": order, "cause": str(error)},
            )
            if isinstance(error, UnavailableError):
                self._given.pop(claim, None)


def job_of(run: Run) -> Job:
    """A job as the batch system knows it."""
    return Job(run.id, run.intent, run.owner)


def _wanted(run: Run) -> str:
    if run.stop is not None:
        return "cancel"
    stopped = run.state in {BatchState.HELD, BatchState.SUSPENDED}
    if run.held and run.state in {BatchState.QUEUED, BatchState.RUNNING}:
        return "hold"
    return "release" if not run.held and run.orders and stopped else ""
