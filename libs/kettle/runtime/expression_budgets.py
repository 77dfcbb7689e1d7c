"""
Expressions that were given up because they cost too much: a metric, and a line in the log now and then.

Submitters, workers and askers send expressions; the service goes on whatever these say, but somebody should know.
"""

import logging
import time
from collections import deque
from typing import Final

from kettle.classad import Node, unparse
from kettle.classad.errors import BUDGETS
from kettle.runtime.telemetry import Telemetry
from kettle.terminal.text import visible
from kettle_wire.telemetry.process_metrics import GIVEN_UP

_log: Final = logging.getLogger(__name__)
_QUIET_S: Final = 60.0
"""Between two lines in the log: one expression may be evaluated for thousands of ads."""
_MOST_LINES: Final = 5
"""In that time that name expressions: who sends thousands does not fill the log."""
_MOST_NAMED: Final = 1000
_LONGEST: Final = 300
"""Characters of an expression in the log."""


def watch_budgets(telemetry: Telemetry) -> None:
    """Report from now on what expressions exceed their budget in this process."""
    telemetry.observe(GIVEN_UP, lambda: BUDGETS.exceeded)
    silent_until = 0.0

    def notice(sentence: str, exceeded: int) -> None:
        nonlocal silent_until
        now = time.monotonic()
        if now >= silent_until:
            silent_until = now + _QUIET_S
            _log.warning(
                "the evaluation of an expression was given up: %s", sentence, extra={"so_far": exceeded}
            )

    BUDGETS.watch = notice
    BUDGETS.blame = _Blamed().note


class _Blamed:
    """The expressions that were given up, each named once, and few of them in a minute."""

    def __init__(self) -> None:
        self._named: set[str] = set()
        self._lately: deque[float] = deque(maxlen=_MOST_LINES)

    def note(self, expression: Node | str) -> None:
        """Name an expression that is given up, if it is new."""
        now = time.monotonic()
        if len(self._lately) == _MOST_LINES and now - self._lately[0] < _QUIET_S:
            return
        try:
            text = expression if isinstance(expression, str) else unparse(expression)
        except RecursionError:
            return  # it is nested too deeply to be written down, too
        text = visible(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ...")
        if text not in self._named:
            if len(self._named) >= _MOST_NAMED:
                self._named.clear()
            self._named.add(text)
            self._lately.append(now)
            _log.warning("this expression was given up: %s", text)
