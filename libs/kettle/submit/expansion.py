"""
From a description to a submission: the attributes that all jobs share, and a table of those that differ.

Most of a description is the same for each job, so every rule is worked out once and again only if it looked at
something that changes: ten thousand jobs that differ in their arguments cost ten thousand arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle.jobs.nodes import PLACEHOLDER
from kettle.submit.attributes import CONSTANTS, RULES, custom
from kettle.submit.commands import NAMES
from kettle.submit.errors import NoJobError
from kettle.submit.lookup import Lookup
from kettle.submit.macros import CLUSTER
from kettle.submit.nodes import is_parallel
from kettle.submit.resources import needs
from kettle.submit.statements import Description, Queue
from kettle.submit.submit_machine import Disk, Site
from kettle_wire.ads.types import Ad, Expr, Scalar

_ABSENT = Expr("undefined")
_NEVER_USED: Final = frozenset({"dag_status", "failed_count", "job", "retry"})
"""What DAGMan gives every description, whether it wants to know or not."""
_OF_THE_CLUSTER: Final = {"executable": "", "universe": "vanilla"}
"""What the jobs of a cluster have in common, and what it is when nothing is written."""


class Unused(msgspec.Struct, frozen=True):
    """
    An assignment that nothing looked at: it is no command, or of no effect, and no macro that anything uses.
    """

    name: str
    text: str
    of_queue: bool = False
    """It is a variable of a queue statement."""


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """
    One cluster, ready to be sent: job `p` is `ad` plus `columns[i] = rows[p][i]`.

    A string may contain `$(ClusterId)`, literally: the schedd puts the number in when it gives one, in every string
    value of the ad and of the rows.  In expressions the number is already the attribute ClusterId.
    """

    ad: Ad
    columns: list[str]
    rows: list[list[Scalar]]
    warnings: tuple[str, ...] = ()
    """The warnings of the description, which only the submitter gets."""
    unused: tuple[Unused, ...] = ()
    """What the description says that means nothing."""

    @property
    def count(self) -> int:
        """How many jobs there are."""
        return len(self.rows)

    def job(self, proc: int) -> Ad:
        """The whole ad of one job."""
        return self.ad | dict(zip(self.columns, self.rows[proc], strict=True))

    def queued(self, proc: int, cluster: int) -> Ad:
        """The submission with the number of its cluster, as far as that is known here."""
        ad = self.job(proc) | {"ClusterId": cluster, "ProcId": proc}
        number = str(cluster)
        return {
            name: value.replace(CLUSTER, number) if isinstance(value, str) else value
            for name, value in ad.items()
        }


class Expanded(msgspec.Struct, frozen=True):
    """The jobs of one queue statement: what they share, and what each has of its own."""

    shared: Ad
    own: list[Ad]
    warnings: tuple[str, ...]
    seen: set[str]


def expand(description: Description, site: Site) -> Submission:
    """
    All jobs of a description that makes one cluster.

    Raises:
        SubmitError: as `expand_clusters` does; or a second cluster would begin at one of the queue statements.
    """
    first, *more = queues_of_clusters(description)
    if more:
        (second, *_), *_ = more
        raise second.refused(
            f"a second cluster would begin here, because of another {_another(first[-1], second)} than before, "
            "and one cluster is all that is wanted here; write a description for each"
        )
    return _submission(first, description, site, Disk())


def expand_clusters(description: Description, site: Site) -> list[Submission]:
    """
    All jobs of a description, one submission for each cluster that they make, in order; there is at least one.

    A cluster begins at a queue statement that sees another `executable` or `universe`, as they are written, than the one
    before it.  What the description has to say are warnings of the first.

    It looks at every file that the description names, so it does not belong on an event loop.

    Raises:
        SubmitError: a command cannot be carried out, or a file is missing.
    """
    disk = Disk()
    first, *more = (
        _submission(queues, description, site, disk) for queues in queues_of_clusters(description)
    )
    told = set(description.warnings)
    return [
        first,
        *(
            msgspec.structs.replace(
                each, warnings=tuple(said for said in each.warnings if said not in told), unused=()
            )
            for each in more
        ),
    ]


def queues_of_clusters(description: Description) -> list[list[Queue]]:
    """The queue statements that make jobs, those of each cluster together."""
    clusters: list[list[Queue]] = []
    for queue in description.queues:
        if not (queue.iteration.count and queue.iteration.rows):
            continue
        if clusters and not _another(clusters[-1][-1], queue):
            clusters[-1].append(queue)
        else:
            clusters.append([queue])
    if not clusters:
        last = description.queues[-1]
        raise NoJobError(
            last.iteration.empty or "the queue statement makes no job", source=last.source, line=last.line
        )
    return clusters


def _another(before: Queue, after: Queue) -> str:
    """
    The command for which the jobs of two queue statements do not belong into one cluster; empty if they do.
    """
    for name, usual in _OF_THE_CLUSTER.items():
        if _written(before, name, usual) != _written(after, name, usual):
            return name
    return ""


def _written(queue: Queue, name: str, usual: str) -> str:
    spellings = (name, *(other.lower() for other in NAMES[name]))
    assignment = next((found for key in spellings if (found := queue.assignments.get(key))), None)
    text = assignment.text.strip() if assignment else ""
    return (text.lower() if usual else text) or usual


def _submission(queues: list[Queue], description: Description, site: Site, disk: Disk) -> Submission:
    batches: list[Expanded] = []
    count = 0
    for queue in queues:
        batches.append(expand_queue(queue, description, site, disk, own_macros(queue, count)))
        count += len(batches[-1].own)
    warnings = dict.fromkeys((*description.warnings, *(said for batch in batches for said in batch.warnings)))
    seen = set(description.seen).union(*(batch.seen for batch in batches))
    unused = tuple(_unused(queues, seen)) if description.tolerant else ()
    return msgspec.structs.replace(_table(batches), warnings=tuple(warnings), unused=unused)


def _unused(queues: list[Queue], seen: set[str]) -> Iterator[Unused]:
    """What is never looked at; names with dots are attributes, or what tools keep for themselves."""
    assigned = {key: one for queue in queues for key, one in queue.assignments.items() if not one.automatic}
    variables = {name.lower(): name for queue in queues for name in queue.iteration.variables}
    for key, assignment in assigned.items():
        if key not in seen | _NEVER_USED | variables.keys() and "." not in key:
            yield Unused(assignment.name, assignment.text)
    for key, name in variables.items():
        if key not in seen:
            yield Unused(name, "", of_queue=True)


def expand_queue(
    queue: Queue, description: Description, site: Site, disk: Disk, live: Iterable[Mapping[str, str]]
) -> Expanded:
    """The jobs of a queue statement, of which each has the macros `live` of its own; raises SubmitError."""
    lookup = Lookup(
        queue,
        site=site,
        disk=disk,
        cwd=description.cwd,
        environ=description.environ,
        entropy=description.entropy,
        tolerant=description.tolerant,
    )
    spelling = {name.lower(): name for name in CONSTANTS}
    shared, own = _Spelled(dict(CONSTANTS), spelling), list[Ad]()
    rules = [*RULES, needs, custom]
    varying = list(rules)
    fixed: set[str] = set()
    for macros in live:
        lookup.job(macros)
        mine = _Spelled({}, spelling)
        for rule in list(varying):
            lookup.watch()
            part = rule(lookup)
            if lookup.varied:
                mine.overlay(part)
            else:
                varying.remove(rule)
                shared.overlay(part)
                fixed |= {name.lower() for name in part} if rule is custom else set()
        own.append({name: value for name, value in mine.ad.items() if name.lower() not in fixed})
    lookup.refuse_missing()
    return Expanded(shared.ad, own, tuple(lookup.warnings), lookup.seen)


class _Spelled:
    """
    An ad in which an attribute keeps the spelling that it had first; `spelling` is shared by related ads.
    """

    def __init__(self, ad: Ad, spelling: dict[str, str]) -> None:
        self.ad = ad
        self._spelling = spelling

    def overlay(self, part: Ad) -> None:
        """Set attributes over those that are there."""
        for name, value in part.items():
            self.ad[self._spelling.setdefault(name.lower(), name)] = value


def own_macros(queue: Queue, first: int) -> Iterator[Mapping[str, str]]:
    """For each job the macros that only it has."""
    variables = [name.lower() for name in queue.iteration.variables]
    universe = queue.assignments.get("universe")
    node = PLACEHOLDER if universe is not None and is_parallel(universe.text) else ""
    proc = first
    for row in queue.iteration.rows:
        for step in range(queue.iteration.count):
            yield {
                "process": str(proc), "procid": str(proc), "jobid": f"{CLUSTER}.{proc}",
                "step": str(step), "row": str(row.index), "itemindex": str(row.index), "node": node,
                **dict(zip(variables, row.values, strict=True)),
            }  # fmt: skip
            proc += 1


def _table(batches: list[Expanded]) -> Submission:
    names = dict.fromkeys(name for batch in batches for part in (batch.shared, *batch.own) for name in part)
    ad: Ad = {}
    columns: dict[str, list[Scalar]] = {}
    own = {name for batch in batches for part in batch.own for name in part}
    for name in names:
        shared = [default for _, default in _defaults(batches, name)]
        if name not in own and all(_same(value, shared[0]) for value in shared):
            ad[name] = shared[0]  # nobody has one of its own: that need not be found out job by job
            continue
        values = [job.get(name, default) for batch, default in _defaults(batches, name) for job in batch.own]
        if all(_same(value, values[0]) for value in values):
            ad[name] = values[0]
        else:
            columns[name] = values
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    count = sum(len(batch.own) for batch in batches)
    return Submission(ad=ad, columns=list(columns), rows=rows or [[] for _ in range(count)])


def _defaults(batches: list[Expanded], name: str) -> list[tuple[Expanded, Scalar]]:
    return [(batch, batch.shared.get(name, _ABSENT)) for batch in batches]


def _same(one: Scalar, other: Scalar) -> bool:
    return type(one) is type(other) and one == other
