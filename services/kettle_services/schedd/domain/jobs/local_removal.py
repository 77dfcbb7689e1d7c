"""
What becomes of a job that somebody removed from the batch system that its route had brought it to.

Pure. Its route says it, in the job's ad: OnLocalRemove is `fail` (the job is removed, with the reason), `hold`, or `retry`, as often as
OnLocalRemoveRetries says; after that it fails.
"""

from collections.abc import Mapping
from typing import Final, Literal

from kettle.classad import ClassAd, EvaluationFailed, evaluate, parse
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad
from kettle_wire.codes import VacateCode

Fate = Literal["fail", "hold", "retry"]
_FATES: Final[Mapping[str, Fate]] = {"fail": "fail", "hold": "hold", "retry": "retry"}
_BEFORE: Final = parse(f"NumVacatesByReason.{VacateCode.RemovedInBatchSystem.name}")


def fate(ad: Ad, now: float) -> Fate:
    """What becomes of it, by its ad as it was before."""
    wanted = _FATES.get(str(ad.get("OnLocalRemove", "fail")).lower(), "fail")
    if wanted != "retry":
        return wanted
    most = ad.get("OnLocalRemoveRetries", 0)
    return "retry" if isinstance(most, int) and _times(ad, now) < most else "fail"


def _times(ad: Ad, now: float) -> int:
    """How often that has happened to it already."""
    try:
        value = evaluate(_BEFORE, my=ClassAd.from_wire(ad), context=evaluation.at(now))
    except EvaluationFailed:
        return 0
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
