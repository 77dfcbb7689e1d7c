"""
Of what too little is left where a job could run: which amounts of partitionable slots others use at this moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kettle.matchmaking.request import RESOURCES, Request
from kettle.matchmaking.slots import Offer
from kettle_wire.commands.negotiator import UsedUp

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from kettle.classad import ClassAd
    from kettle.matchmaking.explanation import Explainer

    Integers: TypeAlias = npt.NDArray[np.int64]
    Reals: TypeAlias = npt.NDArray[np.float64]

_REQUEST: Final = "Request"


def used_up(explainer: Explainer, job: ClassAd) -> list[UsedUp]:
    """
    The resources of which slots that could run the job have less left than it asks for, the one that most lack first.
    """
    request = Request(job, explainer.context)
    if request.fault is not None:
        return []
    places = np.flatnonzero(explainer.able(job))
    offer = Offer(explainer.table, explainer.rows[places])
    divided = offer.partitionable[explainer.rows[places]]
    places = places[divided]
    rows = explainer.rows[places]
    written = {name.lower(): name[len(_REQUEST) :] for name in job if name.lower().startswith("request")}
    found = [
        UsedUp(
            resource=written.get(f"request{name.lower()}", name),
            slots=int(np.count_nonzero(short)),
            asked=float(asked[short].min()),
            left=int(left[short].max()),
        )
        for name, asked, left in _amounts(explainer, job, request, offer, places, rows)
        if (short := left < asked).any()
    ]
    return sorted(found, key=lambda each: -each.slots)


def _amounts(
    explainer: Explainer, job: ClassAd, request: Request, offer: Offer, places: Integers, rows: Integers
) -> Iterator[tuple[str, Reals, Integers]]:
    """By resource what is asked of each of these slots, and what is left there."""
    asked = explainer.asked(job, request)
    for name in RESOURCES:
        amount = asked[name]
        of_each = amount[places] if isinstance(amount, np.ndarray) else np.full(len(places), amount)
        yield name, of_each, offer.free[name][rows]
    for name, count in request.custom.items():
        if name in offer.custom:
            yield name, np.full(len(places), float(count)), offer.custom[name][rows]
