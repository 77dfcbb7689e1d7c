"""
Jobs whose files are sent to the access point and fetched from there, because it does not see the submitter's disk.

Their ads name places in the spool of the access point, and say under `SUBMIT_...` what the submitter had named.
"""

import re
from pathlib import Path
from typing import Final

from kettle_wire.ads.types import Ad

PREFIX: Final = "SUBMIT_"
PLACES: Final = ("Iwd", "OutputDirectory", "Out", "Err", "UserLog", "TransferOutputRemaps")
"""Attributes of such a job that name other places than its submitter did."""
HELD_FOR: Final = "Spooling input data files"
"""HoldReason of a job whose input is not all there, as HTCondor's clients know it."""
RELEASED_FOR: Final = "Data files spooled"
LOG: Final = re.compile(r"log\.[0-9a-f]{16}")
"""How a job event log is called in the spool, beside the directories of its cluster's jobs."""
_BEGUN: Final = "StageInStart"


def root(home: Path, schedd: str) -> Path:
    """The spool of a schedd's jobs in a pool's directory."""
    return home / "state" / f"spooled.{schedd}"


def is_spooled(ad: Ad) -> bool:
    """Whether the queue knows a job as one of these; nobody else can say so."""
    return _BEGUN in ad


def as_submitted(ad: Ad) -> Ad:
    """The ad with the places that the submitter had named."""
    there = {name: value for name, value in ad.items() if name not in PLACES or f"{PREFIX}{name}" not in ad}
    return there | {name: ad[f"{PREFIX}{name}"] for name in PLACES if f"{PREFIX}{name}" in ad}
