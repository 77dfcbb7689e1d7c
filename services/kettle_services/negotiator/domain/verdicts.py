"""What recent cycles said of each autocluster, as it is on record."""

from collections import OrderedDict
from typing import Final

from kettle_services.negotiator.domain.cycle import Outcome, fresh
from kettle_wire.commands.negotiator import RecordedVerdict
from kettle_wire.events import CycleNegotiated, Match, Rejection

Key = tuple[str, str, int]
_REMEMBERED: Final = 10_000
_TOLD: Final = 500
"""So many rejections a cycle records at most; who is left out is news again in the next one."""


class Verdicts:
    """The results of recent cycles for each autocluster."""

    def __init__(self) -> None:
        self.cycle = 0
        """The last one that is on record."""
        self.rejected: dict[Key, Rejection] = {}
        self._said: OrderedDict[Key, RecordedVerdict] = OrderedDict()

    def decided(self, outcome: Outcome, *, started: float, duration: float) -> CycleNegotiated | None:
        """What there is to record of a cycle; None if it gave nothing, and refused nothing new."""
        news = fresh(outcome.rejections, self.rejected)
        refused, more = news[:_TOLD], len(news[_TOLD:])
        if not outcome.matches and not refused:
            return None
        return CycleNegotiated(
            cycle=self.cycle + 1,
            started=started,
            duration=duration,
            slots=outcome.slots,
            idle=outcome.idle,
            matches=outcome.matches,
            rejections=refused,
            more=more,
        )

    def fold(self, event: CycleNegotiated) -> None:
        """The next cycle on record."""
        self.cycle = event.cycle
        matches: dict[Key, list[Match]] = {}
        for match in event.matches:
            matches.setdefault((match.submitter, match.schedd, match.autocluster), []).append(match)
        for key, found in matches.items():
            self.rejected.pop(key, None)
            self._remember(key, RecordedVerdict(cycle=event.cycle, at=event.started, matches=found))
        for rejection in event.rejections:
            key = (rejection.submitter, rejection.schedd, rejection.autocluster)
            self.rejected[key] = rejection
            found = matches.get(key, [])
            self._remember(
                key, RecordedVerdict(cycle=event.cycle, at=event.started, rejection=rejection, matches=found)
            )

    def _remember(self, key: Key, verdict: RecordedVerdict) -> None:
        self._said[key] = verdict
        self._said.move_to_end(key)
        while len(self._said) > _REMEMBERED:
            old, _ = self._said.popitem(last=False)
            self.rejected.pop(old, None)

    def said(self, key: Key) -> RecordedVerdict:
        """The result of the last negotiation for an autocluster."""
        return self._said.get(key, RecordedVerdict(cycle=None, at=0.0))
