"""
What the state machine of an attempt was fed, in a file: to find out later why an attempt went as it did.

`KETTLE_STARTER_STIMULI` names a directory; each attempt gets a file there.  Its first line is the state that the attempt began
with, each other one a stimulus and the state after it.
"""

from typing import Final

import msgspec

from kettle_services.starter.domain.state import StarterState
from kettle_services.starter.domain.stimuli import Stimulus

VARIABLE: Final = "KETTLE_STARTER_STIMULI"


class RecordedStep(msgspec.Struct, frozen=True):
    """A line: what happened, and the state after that."""

    stimulus: Stimulus
    state: StarterState
