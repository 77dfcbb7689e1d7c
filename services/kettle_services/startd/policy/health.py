"""
What the machine of a lease says of itself to the program that renews the lease, and that it takes no more jobs when they fail one
after the other.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kettle.runtime.machine_condition import MachineCondition, write_condition
from kettle_services.startd.domain.policy import failing
from kettle_services.startd.domain.state.claim import DrainInForce
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.settings import StartdSettings
from kettle_wire.worker_reports import FinalReport, Report

_log: Final = logging.getLogger(__name__)
_PAUSE_S: Final = 0.2
"""Between two writings of the file."""
QUARANTINE: Final = "quarantine"
"""The request by which it drains itself; who administers the machine can call it off."""


class Health:
    """Judges the machine by the ends of its jobs."""

    def __init__(
        self, machine: Machine, settings: StartdSettings, drain: Callable[[DrainInForce], None]
    ) -> None:
        """`drain` empties the machine."""
        self._machine = machine
        self._state = settings.state_path
        self._most = settings.quarantine_after
        self._within = settings.quarantine_within
        self._drain = drain
        self._row: failing.Row = ()
        self._ended = 0
        self._condemned = ""
        self._changed = asyncio.Event()
        self._changed.set()

    def changed(self) -> None:
        """Something is to be said that was not before."""
        self._changed.set()

    def ended(self, report: Report, *, asked: bool) -> None:
        """An attempt has ended; `asked`: somebody wanted it to."""
        self._ended += 1
        if asked or not self._most or not isinstance(report.body, FinalReport):
            return
        bad = failing.failed(report.body.result, within=self._within)
        self._row = failing.after(self._row, report.job, failed=bad, most=self._most)
        if not self._condemned and failing.condemns(self._row, self._most):
            self._condemned = (
                f"{len(self._row)} different jobs in a row failed here within {self._within:g} s"
            )
            _log.error("takes no more jobs: %s", self._condemned)
            wish = DrainInForce(id=QUARANTINE, speed="graceful", at=0.0, reason=self._condemned)
            if self._machine.drain is None:
                self._drain(wish)

    async def tell(self) -> None:
        """Keep the file as things are; never returns."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                write_condition(self._state, self._condition())
            except OSError as error:
                _log.warning("nobody is told how the machine is", extra={"cause": str(error)})
            await asyncio.sleep(_PAUSE_S)

    def _condition(self) -> MachineCondition:
        claims = self._machine.shared
        return MachineCondition(
            claims=len(claims),
            running=sum(claim.attempt is not None for claim in claims),
            ended=self._ended,
            failing=len(self._row),
            condemned=self._condemned,
        )
