"""
What happened to the claims of a schedd, in a file: to find out later why a claim went as it did.

`KETTLE_CLAIM_STIMULI` names a directory; the schedd of each name gets a file there.
"""

from typing import Final

import msgspec

from kettle.stimuli.stimulus_log import open_log
from kettle_services.schedd.domain.claims.claim_states import ClaimWitness
from kettle_services.schedd.domain.claims.states import ClaimState, ClaimStimulus

VARIABLE: Final = "KETTLE_CLAIM_STIMULI"


class RecordedClaimStep(msgspec.Struct, frozen=True):
    """A line: a claim, what it was, what happened to it, and what it was after that."""

    claim: str
    before: ClaimState
    stimulus: ClaimStimulus
    after: ClaimState


def claim_witness(schedd: str) -> ClaimWitness | None:
    """What writes the file, if one is wanted and can be had."""
    log = open_log(VARIABLE, schedd)
    if log is None:
        return None
    return lambda claim, before, stimulus, after: log.add(RecordedClaimStep(claim, before, stimulus, after))
