"""
Whether reports come so frequently that waiting a few milliseconds makes one message of several.

Several reports in one message cost the bus, the shadow, the schedd and the database little more than one report; and
the answers, the next jobs, come together too.  On a machine with few events, reports do not wait.
"""

from typing import Final

GATHER_S: Final = 0.006
"""How long the first report of a message waits for others in a rush."""
BRIEF_S: Final = 0.02
"""How long it is not said that a job runs, if there is nothing else to say: one that is over by then is one message."""
_WORTH: Final = 2.0
"""So many more have to be expected in that time."""
_LONGEST_S: Final = 0.05
"""No gap counts for more: the first report after a rest ends the rush at once."""
_WEIGHT: Final = 0.1
"""Of the newest gap in the average."""


class ReportPacing:
    """The pace of the reports to one schedd: a moving average of the seconds from one to the next."""

    def __init__(self) -> None:
        self._newest = float("-inf")
        self._gap = _LONGEST_S

    def came(self, now: float) -> None:
        """There is a report; `now` in seconds on a clock that only goes forward."""
        gap = min(now - self._newest, _LONGEST_S)
        self._newest = now
        self._gap += _WEIGHT * (gap - self._gap)

    @property
    def wait(self) -> float:
        """Seconds to wait for more before what there is is sent."""
        return GATHER_S if self._gap * _WORTH <= GATHER_S else 0.0
