"""Why demand is not met, worked out as far as it is new and as a cycle has time for."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import msgspec

from kettle.classad import ClassAd, Context
from kettle.jobs.significant_attributes import MOST
from kettle.matchmaking import Explainer, Explanation, Limit, Unmet
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.preemption_refusals import PreemptionRefusals
from kettle_wire.ads import Ad, Expr
from kettle_wire.events import Clause, Rejection

NO_MATCH: Final = "no match found"
BUSY: Final = "all matching slots are busy"
CEILING: Final = "the submitter has reached its ceiling"
CONCURRENCY: Final = "a concurrency limit is reached"
QUOTA: Final = "the submitter's accounting group has all that its quota lets it have"
NO_SLOTS: Final = "there are no slots in the pool"
_CAUSES: Final[Mapping[str, str]] = {NO_SLOTS: "no_slots", NO_MATCH: "no_match"}
_LIMITS: Final[Mapping[Limit, str]] = {
    "": BUSY,
    "share": BUSY,
    "ceiling": CEILING,
    "quota": QUOTA,
    "concurrency": CONCURRENCY,
}
_CLAUSES: Final = 20
_CLAUSES_OF_ABLE: Final = 5
"""
The number of clauses that are reported when some slots could run the job, because the job does not wait for them.
"""
_LOOKS: Final = 1_000_000
"""So many times a cycle looks at a slot to explain something; a million takes some 20 milliseconds."""
_MOST: Final = 100
"""So many explanations a cycle gives at most: all of them become one frame of the record."""
_NEARLY: Final = 1 - 1e-9
_EVERY: Final = 2.0
"""Seconds for which an explanation holds although the slots have changed."""

_NAMES_OF_JOB: Final = frozenset({"clusterid", "jobprio", "owner", "procid", "user"})
"""What a schedd says of each job that stands for others, whether a machine asks for it or not."""

_encode: Final = msgspec.msgpack.Encoder().encode

Key = tuple[str, str, int]


class Holding(msgspec.Struct, frozen=True):
    """What a submitter has after a cycle and its share, in slot weights."""

    used: float
    share: float
    """Of all that its group may have, or the whole pool has."""
    whole: bool = False
    """There is nobody to share with."""


class Kept(NamedTuple):
    """What is kept for jobs of several nodes."""

    own: int
    """Slots that are kept for this one."""
    others: bool
    """Some are kept for another one."""


class Reason(msgspec.Struct):
    """A rejection, for which job, slots and fault it was worked out, and when."""

    job: Ad
    version: int
    fault: str | None
    limit: Limit
    reached: tuple[str, ...]
    kept: Kept
    at: float
    rejection: Rejection

    def holds(self, unmet: Unmet, job: Ad, version: int, now: float, kept: Kept) -> bool:
        """Whether there is no cause to work it out again."""
        if (self.fault, self.limit, self.reached) != (
            unmet.fault,
            unmet.limit,
            unmet.reached,
        ) or self.job != job:
            return False
        if self.kept != kept:
            return False
        return self.version == version or (now < self.at + _EVERY and self.rejection.slots > 0)


class Explanations:
    """
    What slots are for jobs, in one cycle: worked out once for those that neither a machine nor they themselves can tell apart.
    """

    def __init__(self, explainer: Explainer, asked: AbstractSet[str]) -> None:
        """`asked`: what machines ask of jobs, in lower case; a part of it where they ask very much."""
        self._explainer = explainer
        self._ignored = _NAMES_OF_JOB - asked if len(asked) < MOST else frozenset[str]()
        self._known: dict[bytes, Explanation] = {}

    def of(self, job: ClassAd) -> Explanation:
        """The explanation for a job."""
        key = self._key(job.to_wire())
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._explainer.explain(job)
        return found

    def _key(self, ad: Ad) -> bytes:
        own = "\0".join(value.expr for value in ad.values() if isinstance(value, Expr)).lower()
        ignored = {name for name in self._ignored if name not in own}
        return _encode({name: value for name, value in ad.items() if name.lower() not in ignored})


class Reasons:
    """The last reasons of each waiting autocluster; one that was never explained comes before all others."""

    def __init__(self) -> None:
        self._said: dict[Key, Reason] = {}

    def give(
        self,
        pool: Pool,
        unmet: Sequence[Unmet],
        *,
        now: float,
        context: Context,
        holdings: Mapping[str, Holding],
        withholding: Callable[[], PreemptionRefusals],
    ) -> tuple[list[Rejection], float | None]:
        """
        The known rejections, and when to ask again for those that are unknown or may be outdated.

        `holdings` are of all submitters that have unmet demand; `withholding` says what protects the slots of others.
        """
        waiting = {_key(one): one for one in unmet}
        jobs = pool.jobs()
        self._said = {key: said for key, said in self._said.items() if key in waiting}
        some = any(one.kept for one in unmet)
        kept = {
            key: Kept(one.there if one.kept else 0, some and not one.kept) for key, one in waiting.items()
        }
        stale = [
            key for key in waiting if not self._holds(pool, key, waiting[key], jobs[key], now, kept[key])
        ]
        stale.sort(key=lambda key: said.at if (said := self._said.get(key)) is not None else float("-inf"))
        most = max(1, min(_MOST, _LOOKS // max(1, len(pool.slots))))
        if stale:
            slots = pool.machines()
            explanations = Explanations(Explainer(pool.slots, slots, context), pool.asked.names)
            protected = withholding()
            most = max(1, min(most, _LOOKS // max(1, len(slots) + protected.slots)))
            for key in stale[:most]:
                one = waiting[key]
                rejection = _reject(explanations, protected, len(slots), one, kept[key])
                self._said[key] = Reason(
                    jobs[key],
                    pool.slots.news,
                    one.fault,
                    one.limit,
                    one.reached,
                    kept[key],
                    now,
                    rejection,
                )
        rejections = [
            _in_figures(said.rejection, one, holdings[one.demand.submitter])
            for key, one in waiting.items()
            if (said := self._said.get(key)) is not None
        ]
        return rejections, now if len(stale) > most else self._outdated(pool)

    def _holds(self, pool: Pool, key: Key, unmet: Unmet, job: Ad, now: float, kept: Kept) -> bool:
        said = self._said.get(key)
        return said is not None and said.holds(unmet, job, pool.slots.news, now, kept)

    def _outdated(self, pool: Pool) -> float | None:
        """When the first explanation is due that was worked out for other slots."""
        return min(
            (said.at + _EVERY for said in self._said.values() if said.version != pool.slots.news),
            default=None,
        )


class Unasked(Reasons):
    """For cycles without explanations: nothing is computed."""

    def give(
        self,
        pool: Pool,
        unmet: Sequence[Unmet],
        *,
        now: float,
        context: Context,
        holdings: Mapping[str, Holding],
        withholding: Callable[[], PreemptionRefusals],
    ) -> tuple[list[Rejection], float | None]:
        """See `Reasons.give`."""
        return [], None


def _key(unmet: Unmet) -> Key:
    return unmet.demand.submitter, unmet.demand.schedd, unmet.demand.autocluster


def _with_kept(busy: str, unmet: Unmet, kept: Kept) -> str:
    """What keeps a job waiting, with what is kept for it, or for another."""
    if unmet.demand.nodes > 1:
        busy = f"{busy}; it needs {unmet.demand.nodes} slots at the same time"
    if unmet.kept:
        return f"{busy}, and {kept.own} of them are kept for it"
    if kept.others and not unmet.limit:
        return f"{busy}, or kept for a job of several nodes that has waited longer"
    return busy


def _reject(
    explanations: Explanations, protected: PreemptionRefusals, slots: int, unmet: Unmet, kept: Kept
) -> Rejection:
    explained = Explanation(able=0, refusals=[], fault=unmet.fault)
    if unmet.fault is None:
        explained = explanations.of(unmet.demand.job)
    reached = f"{CONCURRENCY}: {', '.join(unmet.reached)}"
    busy = reached if unmet.reached else _with_kept(_LIMITS[unmet.limit], unmet, kept)
    reason = explained.fault or (NO_SLOTS if not slots else busy if explained.able else NO_MATCH)
    cause = "fault" if explained.fault else _CAUSES.get(reason) or unmet.limit or "busy"
    most = _CLAUSES_OF_ABLE if explained.able else _CLAUSES
    return Rejection(
        submitter=unmet.demand.submitter,
        schedd=unmet.demand.schedd,
        autocluster=unmet.demand.autocluster,
        count=unmet.count,
        reason=reason,
        slots=slots,
        clauses=[Clause(side=r.side, text=r.text, refuses=r.refuses) for r in explained.refusals[:most]],
        more=max(0, len(explained.refusals) - most),
        cause=cause,
        able=explained.able,
        limits=list(unmet.reached),
        withheld=protected.of(unmet) if explained.able else [],
    )


def _in_figures(rejection: Rejection, unmet: Unmet, holding: Holding) -> Rejection:
    """The rejection with what is different in every cycle."""
    full = rejection.cause == "busy" and not holding.whole and holding.used >= holding.share * _NEARLY
    asked = unmet.demand.count // unmet.demand.nodes
    return msgspec.structs.replace(
        rejection,
        count=unmet.count,
        asked=asked,
        given=asked - unmet.count,
        cause="share" if full else rejection.cause,
        share=holding.share,
        used=holding.used,
    )
