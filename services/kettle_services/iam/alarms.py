"""Refusals that are recorded: each is counted, and no more of them are written than somebody can read."""

import time
from typing import Final

import msgspec

from kettle.runtime import Telemetry
from kettle_services.iam.domain.join_tokens import Joining, Misused, misused
from kettle_services.iam.domain.rate_limits import Alarms
from kettle_services.iam.domain.refusals import Denied
from kettle_services.iam.record import Record
from kettle_wire.events.iam import AccessDenied
from kettle_wire.telemetry.pool_metrics import REFUSALS

_RATE: Final = 0.5
_BURST: Final = 200.0


class DenialRecord:
    """Records denials and alarms."""

    def __init__(self, record: Record, telemetry: Telemetry) -> None:
        self._record = record
        self._joins = Alarms(rate=_RATE, burst=_BURST)
        self._denials = Alarms(rate=_RATE, burst=_BURST)
        self._refused = telemetry.counter(REFUSALS)

    async def misused(self, joining: Joining, refusal: Misused) -> None:
        """A join token that does not admit the machine; returns after the commit."""
        self._refused.add(1)
        now = time.time()
        more = self._joins.record(now=now)
        if more is not None:
            await self._record.record(misused(joining, refusal.why, more=more, now=now))

    async def denied(self, who: str, action: str, refusal: Denied, address: str) -> None:
        """Somebody was refused; returns after the commit."""
        event = AccessDenied(
            who=who, action=action, code=refusal.code, message=str(refusal), address=address, at=time.time()
        )
        if changes := self.counted(event):
            await self._record.record(changes)

    def counted(self, event: AccessDenied) -> list[tuple[str, AccessDenied]]:
        """What is to be recorded of a refusal: nothing if there are more than somebody can read."""
        self._refused.add(1 + event.more)
        more = self._denials.record(now=time.time(), count=1 + event.more)
        if more is None:
            return []
        return [("alarm/denied", msgspec.structs.replace(event, more=more + event.more))]
