"""What submitters use, as the slots' ads say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kettle.classad.columnar.column import Tag
from kettle.matchmaking import weights
from kettle.matchmaking.ad_limits import LONGEST_NAME
from kettle_services.negotiator.domain.accountant import NOTHING, Use

if TYPE_CHECKING:
    import numpy.typing as npt

    from kettle.classad.columnar import Table

    Booleans: TypeAlias = npt.NDArray[np.bool_]

_IN_USE: Final = ("Claimed", "Preempting")
WHOSE: Final = ("AccountingGroup", "RemoteUser")
"""Where a slot says whose it is; the first that it has."""


def usage(table: Table) -> dict[str, Use]:
    """What each submitter has of the slots."""
    used: dict[str, Use] = {}
    counts = weights(table)
    left: Booleans = np.logical_or.reduce([table.says("State", state) for state in _IN_USE])
    rows = len(table)
    for name in WHOSE:
        column = table.columns.get(name.lower())
        if column is None:
            continue
        here = np.flatnonzero(left & (column.tags[:rows] == Tag.STRING))
        left[here] = False
        classes = column.classes(rows)
        slots = np.bincount(classes.of[here], minlength=len(classes.examples))
        weight = np.bincount(classes.of[here], counts[here], minlength=len(classes.examples))
        for number in np.flatnonzero(slots).tolist():
            submitter = table.value(int(classes.examples[number]), name)
            if isinstance(submitter, str) and 0 < len(submitter) <= LONGEST_NAME:
                use = Use(float(slots[number]), float(weight[number]))
                used[submitter] = used.get(submitter, NOTHING) + use
    return used
