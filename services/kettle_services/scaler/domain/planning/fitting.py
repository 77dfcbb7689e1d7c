"""Which offers would do for which jobs, by the matcher's word, and what each job takes of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
import numpy as np

from kettle.classad import NOTHING, Context, EvaluationFailed, evaluate_attribute
from kettle.classad.columnar import Evaluator, Table
from kettle.matchmaking import Amounts, Explainer, Request
from kettle.matchmaking.request import QUANTA, RESOURCES
from kettle_services.scaler.domain.planning.templates import MARGIN_S, RUN_TIME, as_free, slot_ad, start_of
from kettle_wire.events.lease import Shape
from kettle_wire.events.plan import Obstacle, OfferObstacle
from kettle_wire.worker_pools import PoolKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from kettle_services.scaler.domain.planning.demand import Group
    from kettle_services.scaler.domain.planning.inputs import OfferInput
    from kettle_wire.ads.types import Scalar

    Reals: TypeAlias = npt.NDArray[np.float64]
    Booleans: TypeAlias = npt.NDArray[np.bool_]

SCALING: Final = "ProminenceAutoScalingType"
PATIENCE: Final = "ProminenceMaximumIdleTime"
LONGEST_WAIT: Final = "ProminenceMaximumTimeInQueue"
_LIFE: Final = "MY.TimeToLive"


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """How one group of jobs and all offers suit each other; arrays have an entry for each offer."""

    group: Group
    able: Booleans
    """Whether a machine would take such a job."""
    usable: Booleans
    """Whether one may be made for it as well."""
    need: Reals
    """What a job takes of a machine: a row for each offer, a column for each resource."""
    liked: Reals
    """How the job ranks it: 1 the best of those that are able, 0 the worst."""
    shape: Shape
    alone: bool
    """It was said or follows from its size that a job has a machine for itself, whatever the pool."""
    patience: float
    """Seconds after which a machine that is of no use to the job is given up; 0: it does not say."""
    waits: float
    """Seconds after which a job that has not begun leaves the queue; infinite: it does not."""
    asked: Amounts
    """What a job asks, where that does not depend on the machine."""


class Market:
    """All offers of all pools, as slots that do not exist."""

    def __init__(
        self,
        offers: Sequence[OfferInput],
        learned: Mapping[str, Mapping[str, Scalar]],
        context: Context = NOTHING,
    ) -> None:
        """`learned`: what machines of a template were seen to say, by its key."""
        self.offers: Final = offers
        self._context = context
        self._table = Table()
        self._table.put_many(
            (
                f"{one.pool.name}.{one.offer.name}",
                as_free(one.slot)
                if one.slot is not None
                else slot_ad(
                    f"{one.pool.name}-{one.offer.name}",
                    one.pool,
                    one.offer,
                    life=one.life - one.boot,
                    start=start_of(one.pool, one.offer),
                    learned=learned.get(one.template),
                ),
            )
            for one in offers
        )
        self._explainer = Explainer(self._table, self._table.all_rows, context, policies=True)
        custom = {
            name.lower().removeprefix("totalslot")
            for name in self._table.columns
            if name.startswith("totalslot")
        }
        self.resources: Final = (
            *RESOURCES,
            *sorted(custom - {name.lower() for name in RESOURCES}),
        )
        self.capacity: Final = np.array([self._capacity(row) for row in range(len(offers))]).reshape(
            len(offers), len(self.resources)
        )

    def _capacity(self, row: int) -> list[float]:
        offer = self.offers[row]
        whole = [max(0.0, float(self._table.numbers(name)[row])) for name in RESOURCES]
        more = [
            value if (value := float(self._table.numbers(name)[row])) > 0 else 0.0
            for name in self.resources[len(RESOURCES) :]
        ]
        return [amount * offer.pool.packing for amount in whole] + more

    def fit(self, group: Group) -> Fit:
        """Ask the matcher about all offers on behalf of one group."""
        count = len(self.offers)
        request = Request(group.job, self._context)
        able = self._explainer.able(group.job) if count else np.zeros(0, np.bool_)
        need = self._need(request, count, group)
        wish = _text(group, SCALING, self._context)
        alone = self._alone(need, able, group, wish)
        waits = _number(group, LONGEST_WAIT, self._context)
        waits = waits if waits > 0 else np.inf
        usable = able & np.array(
            [
                self._suits(one, wish, alone=alone) and one.boot < waits and one.grows and one.limit != 0
                for one in self.offers
            ],
            np.bool_,
        )
        fixed = {name: request.fixed.get(name, 0.0) for name in RESOURCES}
        patience = _number(group, PATIENCE, self._context)
        return Fit(
            group=group,
            able=able,
            usable=usable,
            need=need,
            liked=self._liked(group, able),
            shape=Shape.DEDICATED if alone else Shape.SHARED,
            alone=alone,
            patience=patience if 0.0 < patience < np.inf else 0.0,
            waits=waits,
            asked=Amounts(fixed, request.custom),
        )

    def _need(self, request: Request, count: int, group: Group) -> Reals:
        need = np.zeros((count, len(self.resources)))
        slots = Evaluator(
            self._table,
            my=group.job,
            rows=self._table.all_rows,
            overlay=self._explainer.overlay,
            context=self._context,
        )
        varying = request.of(slots) if request.varying and count else {}
        for column, name in enumerate(self.resources):
            if name in RESOURCES:
                exact = np.nan_to_num(varying.get(name, np.full(count, request.fixed.get(name, 0.0))))
                rounded = -(-exact // QUANTA[name]) * QUANTA[name]
                # A request that just fits is carved out as it is.
                need[:, column] = np.where(rounded > self.capacity[:, column], exact, rounded)
            else:
                need[:, column] = request.custom.get(name, 0)
        return need

    def _alone(self, need: Reals, able: Booleans, group: Group, wish: str) -> bool:
        """
        Whether such a job gets a machine for itself: it says so, it needs several, or most of the largest one.
        """
        if wish == Shape.DEDICATED or group.nodes > 1:
            return True
        if wish == Shape.SHARED:
            return False
        shared = [
            row
            for row, one in enumerate(self.offers)
            if able[row] and one.pool.kind is not PoolKind.DEDICATED
        ]
        if not shared:
            return True
        return all(self._is_large(row, need) for row in shared)

    def _is_large(self, row: int, need: Reals) -> bool:
        pool = self.offers[row].pool
        rows = [other for other, one in enumerate(self.offers) if one.pool.name == pool.name]
        largest = self.capacity[rows].max(axis=0)
        asked = need[row]
        parts = asked[largest > 0] / largest[largest > 0]
        return bool(parts.max(initial=0.0) > pool.dedicated_fraction)

    def _suits(self, one: OfferInput, wish: str, *, alone: bool) -> bool:
        """Whether the pool makes machines of the shape that the jobs get."""
        if wish == "none":
            return False
        return alone or one.pool.kind is not PoolKind.DEDICATED

    def _liked(self, group: Group, able: Booleans) -> Reals:
        liked = np.zeros(len(self.offers))
        if group.job.find("rank") is None or not able.any():
            return liked
        ranks = Evaluator(
            self._table,
            my=group.job,
            rows=self._table.all_rows,
            overlay=self._explainer.overlay,
            context=self._context,
        ).numbers("rank")
        ranks = np.where(np.isfinite(ranks), ranks, 0.0)
        least, most = ranks[able].min(), ranks[able].max()
        return np.where(able, (ranks - least) / (most - least), 0.0) if most > least else liked

    def obstacles(self, fit: Fit) -> list[OfferObstacle]:
        """Why each offer that is not usable is not."""
        clauses = self._clauses(fit) if not fit.able.all() else {}
        wish = _text(fit.group, SCALING, self._context)
        return [
            self._obstacle(row, one, fit, clauses, wish)
            for row, one in enumerate(self.offers)
            if not fit.usable[row]
        ]

    def _obstacle(
        self, row: int, one: OfferInput, fit: Fit, clauses: Mapping[int, str], wish: str
    ) -> OfferObstacle:
        pool, offer = one.pool.name, one.offer.name
        if not fit.able[row]:
            text = clauses.get(row, "")
            life = text.endswith(_LIFE)
            words = self._lives(fit.group, one) if life else text
            kind = Obstacle.LIFE if life else Obstacle.OWNER if _of_owner(text) else Obstacle.CLAUSE
            return OfferObstacle(pool=pool, offer=offer, obstacle=kind, words=words)
        if not self._suits(one, wish, alone=fit.alone):
            return OfferObstacle(pool=pool, offer=offer, obstacle=Obstacle.SCALING, words=wish)
        if one.boot >= fit.waits:
            words = (
                f"the jobs wait {fit.waits:.0f} s at most, and a machine takes {one.boot:.0f} s to be ready"
            )
            return OfferObstacle(pool=pool, offer=offer, obstacle=Obstacle.SCALING, words=words)
        if not one.grows:
            return OfferObstacle(pool=pool, offer=offer, obstacle=Obstacle.PAUSED)
        return OfferObstacle(
            pool=pool, offer=offer, obstacle=Obstacle.CLOSED, words=one.words, until=one.until
        )

    def _lives(self, group: Group, one: OfferInput) -> str:
        needs = next(filter(None, (_number(group, name, self._context) for name in RUN_TIME)), 0.0)
        return f"needs {needs:.0f} s, lives {one.life - one.boot - MARGIN_S:.0f} s"

    def _clauses(self, fit: Fit) -> dict[int, str]:
        """For each offer the first clause that refuses, of either side."""
        found: dict[int, str] = {}
        for condition in self._explainer.conditions(fit.group.job):
            for place in condition.places[~condition.holds].tolist():
                found.setdefault(int(place), condition.text)
        request = Request(fit.group.job, self._context)
        for name, small in self._explainer.too_small(fit.group.job, request).items():
            for row in np.flatnonzero(small).tolist():
                found.setdefault(row, f"Request{name} = {request.fixed.get(name, 0.0):.15g} does not fit")
        return found


def _of_owner(text: str) -> bool:
    return text.startswith("member(TARGET.Owner") or "TARGET.AcctGroup" in text


def _text(group: Group, name: str, context: Context) -> str:
    value = _value(group, name, context)
    return value.lower() if isinstance(value, str) else ""


def _number(group: Group, name: str, context: Context) -> float:
    value = _value(group, name, context)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _value(group: Group, name: str, context: Context) -> object:
    try:
        return evaluate_attribute(name, group.job, None, context)
    except EvaluationFailed:
        return None
