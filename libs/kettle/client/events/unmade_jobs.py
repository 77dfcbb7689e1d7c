"""
Which jobs that are still to be made will meet a condition.

Pure; nobody but the submission knows them yet.
"""

from collections.abc import Iterator

from kettle.classad import ClassAd, Node, conceals, evaluate, is_true, parse, references
from kettle.classad.reference_analysis import trimmed
from kettle.jobs.submitted_ad import job_ads
from kettle_wire.events.cluster import ClusterSubmitted

_OF_EACH = frozenset({"procid", "globaljobid"})


def meeting(constraint: str, submitted: ClusterSubmitted, at_us: int, procs: range) -> Iterator[int]:
    """
    The numbers among `procs` of the jobs that meet it as they were submitted, at `at_us`; of jobs that are alike one is tried.

    What somebody edits before they are made is not known here.
    """
    expression, make = parse(constraint), job_ads(submitted, at_us)
    if not procs:
        return
    first = ClassAd.from_wire(make(procs[0], ""))
    if not _differs(expression, first, submitted):
        yield from procs if is_true(evaluate(expression, my=first)) else ()
        return
    for proc in procs:
        if is_true(evaluate(expression, my=ClassAd.from_wire(make(proc, "")))):
            yield proc


def _differs(expression: Node, first: ClassAd, submitted: ClusterSubmitted) -> bool:
    """Whether it may be true of some jobs of a submission and not of others."""
    found = references(expression, first)
    names = {name.lower() for name in (*found.internal, *map(trimmed, found.external))}
    own = {name.lower() for name in submitted.columns} | _OF_EACH
    return conceals(expression) or not names.isdisjoint(own)
