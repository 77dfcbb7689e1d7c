"""
Expressions that were given up because they cost too much: a metric, and a line in the log now and then.

Submitters, workers and askers send expressions; the service goes on whatever these say, but somebody should know.
"""

import logging
import time
from typing import Final

from kettle.classad.errors import BUDGETS
from kettle.runtime.telemetry import Telemetry

_log: Final = logging.getLogger(__name__)
_QUIET_S: Final = 60.0
"""Between two lines in the log: one expression may be evaluated for thousands of ads."""


def watch_budgets(telemetry: Telemetry) -> None:
    """Report from now on what expressions exceed their budget in this process."""
    telemetry.gauge(
        "kettle.expressions.given_up",
        lambda: BUDGETS.exceeded,
        description="Evaluations of expressions that would have taken too long",
    )
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
