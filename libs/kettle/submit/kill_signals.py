"""The signals by which a job is asked to end."""

import signal
from typing import Final

from kettle.submit.errors import PlacelessError
from kettle.submit.expressions import scalar, unquoted
from kettle.submit.lookup import Lookup, Setting, placed
from kettle_wire.ads.types import Ad

_SIGNALS: Final = {"kill_sig": "KillSig", "hold_kill_sig": "HoldKillSig", "remove_kill_sig": "RemoveKillSig"}
_OTHERS: Final = {"kill_sig_timeout": "KillSigTimeout", "want_graceful_removal": "WantGracefulRemoval"}


def signals(lookup: Lookup) -> Ad:
    """By which signal, whether at all when it is removed, and how long it may take."""
    ad: Ad = {}
    for command, attribute in _SIGNALS.items():
        if given := lookup.get(command):
            ad[attribute] = _signal(given, command)
    for command, attribute in _OTHERS.items():
        if given := lookup.get(command):
            try:
                ad[attribute] = scalar(given.text)
            except PlacelessError as error:
                raise placed(given, error) from error
    return ad


def _signal(given: Setting, command: str) -> str:
    text = unquoted(given.text).upper()
    number = int(text) if text.isascii() and text.isdecimal() else 0
    name = (
        next((each.name for each in signal.Signals if each == number), "") or f"SIG{text.removeprefix('SIG')}"
    )
    if name not in signal.Signals.__members__:
        given.refuse(f"{command} must be a signal, as SIGTERM or 15, not '{given.text}'")
    return name
