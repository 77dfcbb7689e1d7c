"""Answers to `why`: what is on record, and the present state."""

import asyncio
import time
from collections import OrderedDict
from typing import Final

import msgspec

from kettle.classad import FOREIGN_STEPS, ClassAd, Context
from kettle.matchmaking import Analyst, Explainer
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.verdicts import Key
from kettle_services.negotiator.record import Record
from kettle_wire.ads import Ad
from kettle_wire.commands.negotiator import Analysis, Verdict, Why
from kettle_wire.identity import Identity

_KEPT: Final = 100
_HOLDS: Final = 2.0
"""Seconds for which an answer is given again although the slots have changed."""
_TABLE_STEPS: Final = 2_000_000


class _Known(msgspec.Struct, frozen=True):
    """An analysis, for which job and slots it was made, and when."""

    job: Ad
    news: int
    at: float
    analysis: Analysis


class Answering:
    """
    Tries jobs on all slots on request.

    Repeated requests take no more than half of the time of this process, which has to run cycles.
    """

    def __init__(self, record: Record, pool: Pool) -> None:
        self._record = record
        self._pool = pool
        self._known: OrderedDict[Key, _Known] = OrderedDict()
        self._looking = asyncio.Lock()
        self._rested = 0.0

    async def why(self, request: Why, caller: Identity) -> Verdict:
        """
        The result of the last negotiation for an autocluster, and what prevents the use of which slots now.
        """
        del caller  # everybody may ask
        key = (request.submitter, request.schedd, request.autocluster)
        async with self._looking:
            await asyncio.sleep(max(0.0, self._rested - time.monotonic()))
            job = self._pool.job(*key)
            analysis = None if job is None else self._analysis(key, _changed(job, request.changes))
        said = self._record.said(key)
        return Verdict(
            cycle=said.cycle, at=said.at, rejection=said.rejection, matches=said.matches, analysis=analysis
        )

    def _analysis(self, key: Key, job: Ad) -> Analysis:
        began, slots = time.monotonic(), self._pool.slots
        known = self._known.get(key)
        if known is None or known.job != job or (known.news != slots.news and began > known.at + _HOLDS):
            context = Context(
                now=lambda: int(time.time()), max_steps=FOREIGN_STEPS, max_table_steps=_TABLE_STEPS
            )
            analyst = Analyst(Explainer(slots, self._pool.machines(), context, policies=True))
            known = _Known(job, slots.news, began, analyst.analyse(ClassAd.from_wire(job)))
            self._known[key] = known
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
            ended = time.monotonic()
            self._rested = ended + (ended - began)
        return known.analysis


def _changed(job: Ad, changes: Ad) -> Ad:
    """A job with other attributes, however their names are written."""
    if not changes:
        return job
    gone = {name.lower() for name in changes}
    return {name: value for name, value in job.items() if name.lower() not in gone} | changes
