"""How long a job whose start failed is not started again."""

from typing import Final

from kettle.retry.backoff import Backoff
from kettle_wire.codes import REFUSED_ACTIVATIONS, VacateCode

LONGEST_COOL_DOWN: Final = 300.0

MAY_REPEAT: Final = REFUSED_ACTIVATIONS | {
    VacateCode.ShadowException, VacateCode.JobNotStarted, VacateCode.FailedToActivateClaim,
    VacateCode.StarterError, VacateCode.ScratchDirError, VacateCode.ActivationRefusedBadRequest,
}  # fmt: skip
"""VacateReasonCodes of attempts that failed before or around the job, and might soon fail again."""


def cool_down(code: int, failures: int, *, began: bool, first: float) -> float:
    """
    Seconds, `first` of them after the first failure and more after each further one in a row.

    None for the first mishap of a job that ran: that was no failure of its start.
    """
    if code not in MAY_REPEAT or (began and not failures):
        return 0.0
    return Backoff(first=first, longest=LONGEST_COOL_DOWN, spread=0.0).length(failures)
