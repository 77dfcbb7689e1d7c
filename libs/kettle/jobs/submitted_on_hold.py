"""
Jobs that are submitted on hold: what their submitters say, and what is recorded of them right after the submission.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kettle.jobs.lower_names import lower_names
from kettle_wire.ads.types import Ad, Scalar
from kettle_wire.codes import HoldCode, JobStatus

REASON: Final = "submitted on hold at user's request"
STATUS: Final = "JobStatus"

SUBMITTED_ON_HOLD: Final[Mapping[str, Scalar]] = {
    STATUS: int(JobStatus.HELD),
    "HoldReason": REASON,
    "HoldReasonCode": int(HoldCode.SubmittedOnHold),
}
"""
The attributes of such a job's ad; the schedd records an event for it, so that it is reported like any other hold.
"""


def on_hold(ad: Ad, columns: Sequence[str], rows: Sequence[Sequence[Scalar]]) -> Iterator[int]:
    """The numbers of those jobs of a submission that are on hold."""
    own = [index for index, name in enumerate(columns) if name.lower() == STATUS.lower()]
    spelled = lower_names(ad).get(STATUS.lower())
    same = [] if spelled is None else [ad[spelled]]
    if not own and not same:
        return
    for proc, row in enumerate(rows):
        if JobStatus.HELD in (row[index] for index in own) or (not own and JobStatus.HELD in same):
            yield proc
