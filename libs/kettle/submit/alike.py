"""
Submissions of one description that differ only in what is given beside it, as those of the nodes of a DAG: it is read once, and of
each only that is worked out again which looks at what differs.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kettle.submit.expansion import Submission, expand_queue, own_macros, queues_of_clusters
from kettle.submit.statements import NOT_TEXT, Description, Queue
from kettle.submit.submit_machine import Disk, Site


def is_shared(description: Description, given: Sequence[Mapping[str, str]]) -> bool:
    """
    Whether a description that was read with the first of `given` says with any other of them what it would say alone.

    It does not if what is given was looked at as it was read (conditions, included files, the queue statement), if it assigns the
    same names itself, or if it makes several jobs; nor if the universe is given, by which it is known what a node is.
    """
    if len(description.queues) != 1:
        return False
    queue, names = description.queues[0], {name.lower() for name in given[0]}
    iteration = queue.iteration
    return (
        len(names) == len(given[0])
        and all(each.keys() == given[0].keys() for each in given)
        and not any(NOT_TEXT.search(text) for each in given for text in each.values())
        and names.isdisjoint(description.seen | {"universe"})
        and all(queue.assignments[name].line is None for name in names)
        and (iteration.count, len(iteration.rows), iteration.variables) == (1, 1, ())
    )


def expand_alike(
    description: Description, site: Site, given: Sequence[Mapping[str, str]]
) -> list[Submission]:
    """
    One submission for each of `given`, of a description that they share; it looks at files.

    Raises SubmitError: one of them is refused, and it is not said which.
    """
    ((queue,),) = queues_of_clusters(description)
    varying = tuple(name for name in given[0] if len({each[name] for each in given}) > 1)
    alike = msgspec.structs.replace(
        queue, iteration=msgspec.structs.replace(queue.iteration, variables=varying)
    )
    expanded = expand_queue(alike, description, site, Disk(), _jobs(queue, given, varying))
    return [
        Submission(ad={**expanded.shared, **own}, columns=[], rows=[[]], warnings=expanded.warnings)
        for own in expanded.own
    ]


def _jobs(
    queue: Queue, given: Sequence[Mapping[str, str]], varying: Sequence[str]
) -> Iterator[Mapping[str, str]]:
    """The macros of each: it is the only job of its own cluster."""
    (first,) = own_macros(queue, 0)
    for each in given:
        yield {**first, **{name.lower(): each[name] for name in varying}}
