"""The answers of machines that refused claims, to explain why a job waits although it was matched."""

import logging
import time
from collections import OrderedDict
from typing import Final

import msgspec

_log: Final = logging.getLogger(__name__)
_MOST: Final = 1_000
_OLD: Final = 600.0
"""Seconds after which a refusal explains nothing any more."""


class ClaimRefusal(msgspec.Struct, frozen=True):
    """A machine's word."""

    slot: str
    reason: str
    at: float
    """Monotonic."""


class Refusals:
    """The last refusal of each (submitter, autocluster); the oldest are forgotten first."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, int], ClaimRefusal] = OrderedDict()

    def add_refusal(self, key: tuple[str, int], slot: str, reason: str) -> None:
        """Not all requested claims were granted; nothing is noted without a reason."""
        if not reason:
            return
        _log.info("claims refused", extra={"slot": slot, "reason": reason})
        self._last[key] = ClaimRefusal(slot, reason, time.monotonic())
        self._last.move_to_end(key)
        if len(self._last) > _MOST:
            self._last.popitem(last=False)

    def last_refusal(self, key: tuple[str, int]) -> str:
        """A sentence on the last refusal, empty if there was none recently."""
        last = self._last.get(key)
        if last is None or (since := time.monotonic() - last.at) > _OLD:
            return ""
        return f"{last.slot} refused jobs like it {since:.0f} s ago: {last.reason}"
