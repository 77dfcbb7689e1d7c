"""
Which devices of a slot suit a job.
"""

from kettle.classad import ClassAd, Context, EvaluationFailed, List, Node, evaluate, is_true, parse
from kettle.startd.domain.machine import Machine
from kettle.startd.domain.slots import Slot


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
