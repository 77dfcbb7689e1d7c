"""
A file of what a state machine was fed, and of its states, a JSON line each.

The same stimuli lead to the same states on any machine: what is kept of one that went wrong is a test of the next version.
"""

import os
import sys
from typing import Final

import msgspec

_MODE: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class StimulusLog:
    """A file that only its owner can read; a full disk ends the record, and nothing else."""

    def __init__(self, path: str) -> None:
        """Raises OSError: there can be none."""
        self._fd = os.open(path, _MODE, 0o600)

    def add(self, line: msgspec.Struct) -> None:
        """One more line."""
        if self._fd < 0:
            return
        try:
            os.write(self._fd, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            sys.excepthook(type(error), error, error.__traceback__)
            self.close()

    def close(self) -> None:
        """Nothing more happens."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_log(variable: str, name: str) -> StimulusLog | None:
    """The file of that name in the directory that the environment names, if one is wanted and can be had."""
    directory = os.environ.get(variable)
    if not directory:
        return None
    try:
        return StimulusLog(f"{directory}/{name}.{os.getpid()}.jsonl")
    except OSError as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return None
