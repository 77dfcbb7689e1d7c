"""Which devices of a slot suit a job, and whether a claim that is used again suits the next one."""

from collections.abc import Callable

from kettle.classad import ClassAd, Context, EvaluationFailed, List, Node, evaluate, is_true, matches, parse
from kettle_services.startd.domain.slots.resources import STANDARD, Carving, requested, sizes
from kettle_services.startd.domain.slots.slot import Slot
from kettle_services.startd.domain.state.claim import Claim
from kettle_services.startd.domain.state.machine import Machine
from kettle_wire.ads import Ad


def suitable(
    machine: Machine, slot: Slot, job: ClassAd, ad: ClassAd, context: Context
) -> dict[str, list[str]]:
    """
    Free devices of a slot whose properties satisfy the job's `Require<tag>`, by tag; all of them if it has none.

    `ad` is the slot's, in which `Available<tag>` lists the free devices in the same order.
    """
    return {
        tag: _meeting(tag, ids, job, ad, context) if f"require{tag}" in job else ids
        for tag, ids in machine.free_devices(slot).items()
    }


def _meeting(tag: str, ids: list[str], job: ClassAd, ad: ClassAd, context: Context) -> list[str]:
    question = parse(f"evalInEachContext(MY.Require{tag}, TARGET.Available{tag})")
    try:
        answers = evaluate(question, job, ad, context)
    except EvaluationFailed:
        return []
    if not isinstance(answers, List):
        return []
    return [
        each
        for each, answer in zip(ids, answers.items, strict=True)
        if not isinstance(answer, Node) and is_true(answer)
    ]


def suits(slot: ClassAd, job: ClassAd, claim: Claim, context: Context) -> bool:
    """
    Whether a claim's slot and a job match.  A job for which a slot is carved asks for what is carved: there is room for it.
    """
    if not claim.whole:
        slot["WithinResourceLimits"] = True
        job = job.copy()
        for name, amount in claim.resources.named().items():
            if f"Request{name}" in job:
                job[f"Request{name}"] = amount
    return matches(slot, job, context)


def misfit(claim: Claim, carving: Carving, ad: Ad, slot: Callable[[], Ad], context: Context) -> str:
    """
    Why a claim lacks what the job of this ad requests; empty: it lacks nothing.  `slot` makes the claim's ad.

    The claim was requested for the first job on it; later jobs are chosen by the schedd alone.
    """
    if _plainly_fits(claim, ad):
        return ""
    job, mine = ClassAd.from_wire(ad), ClassAd.from_wire(slot())
    request = requested(job, mine, claim.resources.custom, context)
    if request is None:
        return "the job requests of a resource what is no amount"
    possible = [request] if claim.whole else sizes(request, job, mine, carving, context)
    if not any(size.fits(claim.resources) for size in possible):
        return "the job requests more than the claim has"
    for tag, ids in claim.devices.items():
        if f"require{tag}" in job and len(_meeting(tag, ids, job, mine, context)) < request.custom[tag]:
            return f"the claim has not as many {tag} that satisfy the job's Require{tag}"
    return ""


def _plainly_fits(claim: Claim, ad: Ad) -> bool:
    """
    Whether the job's requests are numbers for which there is room, and it says nothing about single devices.

    It is so for nearly all jobs, and costs a hundredth of what expressions do.
    """
    said = {name.lower(): value for name, value in ad.items()}
    if any(f"require{tag}".lower() in said for tag in claim.devices):
        return False
    for name, has in claim.resources.named().items():
        asked = said.get(f"request{name}".lower(), STANDARD.get(name, 0))
        if type(asked) is not int or not 0 <= asked <= has:
            return False
    return True
