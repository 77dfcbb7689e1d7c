"""
The copy of a job's ad that goes to its machine: what follows from the match is put in.

Pure.
"""

from typing import Final

from kettle.classad import (
    ClassAd,
    Context,
    EvaluationFailed,
    Exceptional,
    Value,
    evaluate,
    evaluate_attribute,
    parse,
    unparse,
)
from kettle.classad.errors import ClassAdError
from kettle.jobs.match_references import with_match
from kettle.transfer.file_lists import is_url, items
from kettle.transfer.spooled_jobs import is_spooled
from kettle_services.schedd.domain import evaluation
from kettle_wire.ads import Ad, Expr

ACCOUNT: Final = "JobAccount"
"""In a machine's ad: whom its jobs run as, if they have no accounts of their own; it may ask the job (TARGET)."""

_DOMAIN: Final = "FileSystemDomain"
_MOVED: Final = (
    "OutputDestination",
    "CheckpointDestination",
    "TransferPlugins",
    "ContainerImage",
    "DockerImage",
)
"""Attributes of jobs whose files have to be moved wherever they run."""


def matched(ad: Ad, slot_ad: Ad, now: float) -> Ad:
    """The ad for this machine, with its `$$(...)`, and the decision whether files are moved."""
    context = evaluation.at(now)

    def attribute(name: str) -> str | None:
        return _of_machine(name, ad, slot_ad, context)

    def expression(text: str) -> str | None:
        job, machine = ClassAd.from_wire(ad), ClassAd.from_wire(slot_ad)
        try:
            return _text(evaluate(parse(text), my=job, target=machine, context=context))
        except ClassAdError:
            return None

    found = with_match(ad, attribute, expression)
    return {**found, "ShouldTransferFiles": "NO"} if runs_in_place(ad, slot_ad, now) else found


def runs_in_place(ad: Ad, slot_ad: Ad, now: float) -> bool:
    """
    Whether a job whose files are moved IF_NEEDED finds them where it runs: the machine has the same file systems, and
    the job has its owner's rights there.
    """
    if str(ad.get("ShouldTransferFiles", "")).upper() != "IF_NEEDED" or is_spooled(ad):
        return False
    domain = ad.get(_DOMAIN)
    if not domain or domain != slot_ad.get(_DOMAIN):
        return False
    account = slot_ad.get(ACCOUNT)
    if isinstance(account, Expr):  # each local job runs as its own owner
        account = _of_machine(ACCOUNT, ad, slot_ad, evaluation.at(now))
    if account is None or account != ad.get("Owner"):
        return False
    listed = items(
        f"{ad.get('TransferInput', '')},{ad.get('PublicInputFiles', '')},{ad.get('TransferOutputRemaps', '')}"
    )
    return not any(name in ad for name in _MOVED) and not any(is_url(item) for item in listed)


def _of_machine(name: str, ad: Ad, slot_ad: Ad, context: Context) -> str | None:
    """An attribute of the machine, evaluated for the job; None: it has none."""
    machine = ClassAd.from_wire(slot_ad)
    if name not in machine:
        return None
    try:
        return _text(evaluate_attribute(name, machine, target=ClassAd.from_wire(ad), context=context))
    except EvaluationFailed:
        return None


def _text(value: Value) -> str | None:
    """A value as it stands in text; None for none."""
    if isinstance(value, Exceptional):
        return None
    return value if isinstance(value, str) else unparse(value)
