"""
Why members of sessions wait, in the pool's own words: asked when somebody looks, and remembered for a moment.
"""

import asyncio
import logging
import time
from typing import Final

from kettle.bus.ports import Bus, BusError
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.commands.member_jobs import EXPLAIN_MEMBERS, ExplainMembers
from kettle_wire.commands.negotiator import WHY, Verdict, Why
from kettle_wire.commands.schedd import Explanation
from kettle_wire.commands.sessions import WaitingMembers
from kettle_wire.jobs import JobId

_FRESH_S: Final = 1.0
_WITHIN_S: Final = 1.0
"""What is not said by then is left out: who looks at a session does not wait for it."""
_MOST: Final = 5
"""Reasons of one session."""
_log: Final = logging.getLogger(__name__)


class Reasons:
    """Asks the schedd and the negotiator."""

    def __init__(self, bus: Bus, schedd: str, negotiator: str) -> None:
        self._bus = bus
        self._schedd = schedd
        self._negotiator = negotiator
        self._known: dict[str, tuple[float, int, list[WaitingMembers]]] = {}
        """By session when it was asked, after how many events, and the answer."""

    async def of(self, session: InteractiveSession) -> list[WaitingMembers]:
        """The reasons, the most frequent first; none if nobody says."""
        clusters = sorted(
            {
                JobId.parse(each.job).cluster
                for each in session.members.values()
                if each.job and not each.ending and each.status in {"idle", "held"}
            }
        )
        if not clusters:
            return []
        now = time.monotonic()
        at, events, known = self._known.get(session.id, (0.0, -1, []))
        if now - at < _FRESH_S and events == session.events:
            return known
        try:
            async with asyncio.timeout(2 * _WITHIN_S):
                found = await self._asked(session, clusters)
        except (BusError, TimeoutError) as error:
            _log.info("nobody says why jobs wait", extra={"cause": str(error)})
            found = []
        self._known = {id_: each for id_, each in self._known.items() if now - each[0] < _FRESH_S}
        self._known[session.id] = now, session.events, found
        return found

    async def _asked(self, session: InteractiveSession, clusters: list[int]) -> list[WaitingMembers]:
        request = ExplainMembers(session=session.id, owner=session.owner, clusters=clusters)
        answer = await self._bus.call(EXPLAIN_MEMBERS, self._schedd, request, deadline=_WITHIN_S)
        waiting = [each for each in answer.groups if each.explanation.status in {"idle", "held"}]
        verdicts = await asyncio.gather(*(self._verdict(each.explanation) for each in waiting[:_MOST]))
        return [
            WaitingMembers(count=each.jobs, reason=_sentence(each.explanation, verdict))
            for each, verdict in zip(waiting, verdicts, strict=False)
        ]

    async def _verdict(self, explanation: Explanation) -> Verdict | None:
        if explanation.status != "idle" or explanation.autocluster is None:
            return None
        question = Why(
            submitter=explanation.submitter, schedd=self._schedd, autocluster=explanation.autocluster
        )
        try:
            return await self._bus.call(WHY, self._negotiator, question, deadline=_WITHIN_S)
        except BusError as error:
            _log.info("the negotiator does not say why a job waits", extra={"cause": str(error)})
            return None


def _sentence(explanation: Explanation, verdict: Verdict | None) -> str:
    """
    What `kettle why` says, without for how long it has waited, which is the first of what it says of one that does, and without what
    somebody could do by hand.
    """
    from kettle.client import WhyReport
    from kettle.client.explanations.job_state import answer  # only where something waits

    said = answer(
        WhyReport(job=explanation.job, explanation=explanation, verdict=verdict), now=time.time(), files=False
    )
    if said.status == "idle" and len(said.sentences) > 1:
        return " ".join(said.sentences[1:4])
    return " ".join(said.sentences[:2]) or explanation.reason or "it waits"
