"""
What the state machine of an attempt was fed, in a file: to find out later why an attempt went as it did.

`KETTLE_STARTER_STIMULI` names a directory; each attempt gets a file there.  Its first line is the state that the attempt began
with, each other one a stimulus and the state after it.  The same stimuli lead to the same states on any machine.
"""

import os
import sys
from typing import Final

import msgspec

from kettle.execution.attempts.job_spec import JobSpec
from kettle_services.starter.domain.state import StarterState
from kettle_services.starter.domain.stimuli import Stimulus

VARIABLE: Final = "KETTLE_STARTER_STIMULI"
_MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class RecordedStep(msgspec.Struct, frozen=True):
    """A line: what happened, and the state after that."""

    stimulus: Stimulus
    state: StarterState


class StimulusLog:
    """The file of one attempt."""

    def __init__(self, path: str, state: StarterState) -> None:
        """Raises OSError: there can be none."""
        self._fd = os.open(path, _MODE, 0o600)
        self._write(state)

    def add(self, stimulus: Stimulus, state: StarterState) -> None:
        """One more line.  A full disk ends the record and not the job."""
        self._write(RecordedStep(stimulus, state))

    def close(self) -> None:
        """The attempt is over."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, line: msgspec.Struct) -> None:
        if self._fd < 0:
            return
        try:
            os.write(self._fd, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)
            self.close()


def stimulus_log(spec: JobSpec, state: StarterState) -> StimulusLog | None:
    """The file for an attempt in this process, if one is wanted and can be had."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return None
    try:
        return StimulusLog(f"{directory}/{spec.id.name}.{os.getpid()}.jsonl", state)
    except OSError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return None
