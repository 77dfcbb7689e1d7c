"""What the demonstration of an analysis facility computes."""

import msgspec
import numpy as np

from kettle_services.cli.facility import analysis
from kettle_services.cli.facility.figures import FacilityFigures


def test_a_part_is_the_same_wherever_it_is_computed() -> None:
    """Its columns follow from its number; all pairs are counted once, but for those beyond the last bin."""
    first, again, second = (analysis.histogram(part) for part in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert analysis.BINS == len(first)
    assert 0.5 * analysis.ROWS < first.sum() < analysis.ROWS


def test_the_figures_are_right_only_if_all_of_it_is() -> None:
    """An equal histogram, no job that is left, a clean log."""
    good = FacilityFigures(parts=1, equal=True, left=0, clean=True)
    assert good.right
    for field, wrong in (("equal", False), ("left", 1), ("clean", False)):
        assert not msgspec.structs.replace(good, **{field: wrong}).right
