"""
The universes of jobs, as far as they are carried out: on machines that are matched, or where they were submitted.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kettle.classad import ClassAd, Node
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad, Scalar
from kettle_wire.codes import Universe

AT_HOME: Final[Mapping[int, str]] = {Universe.LOCAL: "Local", Universe.SCHEDULER: "Scheduler"}
"""
Those whose jobs run on the machine of their schedd, without matchmaking, by the word that attributes have for them.
"""
GRID: Final[int] = Universe.GRID
"""Jobs of batch systems."""
UNMATCHED: Final = frozenset({GRID, *AT_HOME})
"""Those whose jobs run without matchmaking, there or in batch systems."""
_ALL_RIGHTS: Final[Mapping[int, str]] = {**AT_HOME, GRID: "Grid"}
_UNIVERSE: Final = "jobuniverse"
CARRIED_OUT: Final = frozenset({Universe.VANILLA, Universe.PARALLEL, *UNMATCHED})


class Starting(msgspec.Struct, frozen=True):
    """
    The site's expressions that say whether one more job of a universe may start here: MY is the schedd's ad.
    """

    local: Node
    scheduler: Node

    def allows(self, universe: int, schedd: Ad, job: Ad, now: float) -> bool:
        """Whether it may; what cannot be evaluated allows nothing."""
        expression = self.local if universe == Universe.LOCAL else self.scheduler
        context = evaluation.at(now)
        return evaluation.holds(expression, ClassAd.from_wire(schedd), context, ClassAd.from_wire(job))


def at_home(universe: Scalar) -> bool:
    """Whether jobs with this JobUniverse run on the machine of their schedd."""
    return isinstance(universe, int) and universe in AT_HOME


def unmatched(universe: Scalar) -> bool:
    """Whether jobs with this JobUniverse run without matchmaking."""
    return isinstance(universe, int) and universe in UNMATCHED


def universe_with_all_rights(ad: Ad, columns: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> str:
    """
    The universe of jobs of a submission that run with all rights of their owner's account, here or in a batch system; empty: none does.
    """
    return _universe_among(_ALL_RIGHTS, ad, columns, rows)


def universe_at_home(ad: Ad, columns: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> str:
    """The universe of jobs of a submission that run on the machine of their schedd; empty: none does."""
    return _universe_among(AT_HOME, ad, columns, rows)


def _universe_among(
    which: Mapping[int, str], ad: Ad, columns: Sequence[str], rows: Sequence[Sequence[Scalar]]
) -> str:
    said = [value for name, value in ad.items() if name.lower() == _UNIVERSE]
    places = [place for place, name in enumerate(columns) if name.lower() == _UNIVERSE]
    said += [row[place] for place in places for row in rows]
    return next((which[value] for value in said if isinstance(value, int) and value in which), "")
