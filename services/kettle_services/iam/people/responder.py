"""Answers the bus that asks who somebody is (`kettle.auth.trust.callout`)."""

import asyncio
import logging
import time
from typing import Final

from kettle.auth.trust.callout import PeopleSigner, Question
from kettle.bus.ports import BusError
from kettle.eventsourcing.log import LogUnavailableError
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.people.connections import PeopleConnections
from kettle_services.iam.people.heard_questions import HeardQuestions
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.people.told import ToldPeople

_LONGEST_S: Final = 86_400.0
"""For so long a connection lasts at the most: then the credential is looked at again."""
_AT_ONCE: Final = 64
"""Questions in hand: most are answered at once, a few wait for the keys of an issuer."""

_log: Final = logging.getLogger(__name__)


class Responder:
    """Answers, as long as `run` runs."""

    def __init__(
        self,
        questions: HeardQuestions,
        signer: PeopleSigner,
        identification: Identification,
        connections: PeopleConnections,
        told: ToldPeople,
        denials: DenialRecord,
    ) -> None:
        self._told = told
        self._questions = questions
        self._connection = questions.connection
        self._refusals = questions.refusals
        self._signer = signer
        self._identification = identification
        self._connections = connections
        self._denials = denials

    async def run(self) -> None:
        """Answer; never returns."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(_AT_ONCE):
                tasks.create_task(self._answer_all(), name=f"callout-{number}")

    async def _answer_all(self) -> None:
        while True:
            question, reply = await self._questions.take()
            try:
                await self._answer(question, reply)
            except (BusError, LogUnavailableError, KeyError):
                _log.exception("somebody is not let in, because who it is could not be recorded or said")
                self._refusals.refuse(reply, question.address)

    async def _answer(self, question: Question, reply: str) -> None:
        try:
            found = await self._identification.identify(question.token)
            person, kind, now = found.person, found.person.kind, time.time()
        except Denied as refusal:
            self._refusals.refuse(reply, question.address)
            if refusal.code != Code.TOKEN_ABSENT:
                await self._denials.denied("", "connect", refusal, question.address)
            return
        ends = min(person.expires or now + _LONGEST_S, now + _LONGEST_S)
        self._connections.came(question, found, kind)
        await self._told.tell(person)
        signed = self._signer.person(question, kind, person.owner, now=int(now), expires=int(ends))
        await self._connection.publish(reply, signed)
