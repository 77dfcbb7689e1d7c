"""One submission in the queue: what was submitted, which of its jobs exist, and which have left."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kettle.jobs import fold_base
from kettle.jobs.credential_attributes import VO
from kettle.jobs.lower_names import lower_names
from kettle.jobs.nodes import node_range
from kettle.jobs.routed_attributes import AWAITS, awaits_route
from kettle_services.schedd.domain.jobs import deferral, policy
from kettle_services.schedd.domain.jobs.factory import Factory, begun
from kettle_services.schedd.domain.negotiation import concurrency_limits
from kettle_services.schedd.domain.negotiation.autoclusters import Autoclusters
from kettle_services.schedd.domain.queue.shared_rows import SharedRows
from kettle_services.schedd.domain.submission import accounting_group
from kettle_services.schedd.domain.submission.departed import DepartedJobs
from kettle_services.schedd.domain.submission.packed_rows import BLOCK, PackedRows
from kettle_services.schedd.domain.submission.submitted_together import Together
from kettle_wire.ads import Ad, Scalar
from kettle_wire.codes import JobStatus, Universe
from kettle_wire.events import ClustersSubmitted, ClusterSubmitted
from kettle_wire.jobs import JobId

WISHES: Final = frozenset(
    {"jobmachineattrs", "lastmatchlistlength", "keepclaimidle", "containerservicenames"}
)
"""
Attributes, in lower case, that are looked at when a job is given a machine: most jobs have none of them.
"""

_LOOKED_AT: Final = (
    WISHES
    | policy.ATTRIBUTES
    | deferral.ATTRIBUTES
    | {concurrency_limits.ATTRIBUTE, accounting_group.CHARGED, AWAITS.lower()}
)


_SHARED: Final = _LOOKED_AT | {"jobuniverse", "requestcpus", VO.lower()}
"""What decides about a cluster as a whole."""


class Cluster(msgspec.Struct):
    """A submission, and which of its jobs have left the queue."""

    submitted: ClusterSubmitted
    at: int
    autoclusters: Autoclusters
    base: Callable[[int], Ad]
    """By number of the job, what the fold of its events needs of its ad."""
    gone: DepartedJobs
    factory: Factory | None = None
    """How far its jobs are made; None: they all were at once."""
    waiting: int = 0
    """How many of a factory's jobs are idle or held."""
    universe: int | None = None
    """JobUniverse of all its jobs; None: they differ in it."""
    periodic: frozenset[JobStatus] = frozenset()
    """The statuses in which its jobs are looked at now and then for a policy of their own."""
    at_exit: bool = False
    """Whether they have one that is looked at when they exit."""
    charged: str | Callable[[list[Scalar]], str] = ""
    """Who is charged for all of its jobs, or for one by its row."""
    timed: bool = False
    """Whether its jobs start at a time of their own."""
    limited: bool = False
    """Whether one of them says that it uses something of which the pool has only so many."""
    wishes: frozenset[str] = frozenset()
    """The settings of its jobs' starts, of `WISHES`."""
    routed: bool = False
    """Whether an entrypoint gives some of its jobs routes."""
    vo: str = ""
    """Of which VO they are; empty: of none, or it does not matter."""
    together: SharedRows | None = None
    """Of what was recorded of many of its jobs at once; None: nothing was."""
    among: Together | None = None
    """Those that it was submitted with; None: it has an event of its own."""

    @property
    def size(self) -> int:
        """How many jobs it has, those included that are not made yet."""
        return len(self.submitted.rows) if self.factory is None else self.factory.size

    @property
    def elsewhere(self) -> bool:
        """Whether some of its jobs may be brought to a batch system."""
        return self.routed or self.universe in {None, Universe.GRID}

    @property
    def made(self) -> int:
        """The jobs before this number are in the queue, or were."""
        return len(self.submitted.rows) if self.factory is None else self.factory.made

    @property
    def present(self) -> int:
        """How many jobs are in the queue."""
        return self.made - len(self.gone)

    @property
    def empty(self) -> bool:
        """Whether all jobs have left, and none is to come."""
        return len(self.gone) == self.size

    def procs(self, since: int = 0) -> Iterator[int]:
        """The numbers of the jobs in the queue, from `since` on."""
        return self.gone.among(self.made, since)

    def jobs(self, since: int = 0) -> Iterator[JobId]:
        """The jobs in the queue, from number `since` on."""
        return (JobId(self.submitted.cluster, proc) for proc in self.procs(since))

    def autocluster(self, proc: int, edited: Ad) -> int:
        """The autocluster of a job, as it was submitted and edited."""
        return self.autoclusters.edited(edited).of(self.submitted.rows[proc])

    def priority(self, proc: int, edited: Ad) -> int:
        """JobPrio of a job, as it was submitted and edited."""
        submitted = self.submitted
        if "JobPrio" in edited:
            value = edited["JobPrio"]
        elif "JobPrio" in submitted.columns:
            value = submitted.rows[proc][submitted.columns.index("JobPrio")]
        else:
            value = submitted.ad.get("JobPrio", 0)
        return value if isinstance(value, int) else 0

    def universe_of(self, proc: int) -> int:
        """JobUniverse of a job."""
        if self.universe is not None:
            return self.universe
        value = self.submitted.rows[proc][self.submitted.columns.index("JobUniverse")]
        return value if isinstance(value, int) else Universe.VANILLA

    def nodes_of(self, proc: int) -> tuple[int, int]:
        """
        How many slots a job needs at the same time, and how many it takes if there are more, as it was submitted.
        """
        if self.universe is not None and self.universe != Universe.PARALLEL:
            return 1, 1
        row = dict(zip(self.submitted.columns, self.submitted.rows[proc], strict=True))
        return node_range({**self.submitted.ad, **row})

    def edit(self, attributes: Ad) -> None:
        """
        One of its jobs has these attributes from now on: what is known of all of them must hold for it, too.
        """
        self.periodic |= policy.periodic(attributes)
        self.at_exit |= policy.at_exit(attributes)
        self.limited |= concurrency_limits.said(attributes)
        self.wishes |= _wishes(attributes)


def cluster_of(
    event: ClusterSubmitted, at: int, gone: DepartedJobs, factory: Factory | None, significant: Iterable[str]
) -> Cluster:
    """A submission as the queue keeps it; `factory`: how far it is, if it has one that has begun."""
    if event.late:
        factory = factory or begun(event)
    if event.late or len(event.rows) > BLOCK:
        event = msgspec.structs.replace(event, rows=PackedRows(event.rows).as_list())
    ad = {name: event.ad[name] for name in _looked_at(lower_names(event.ad))}
    return Cluster(
        event,
        at,
        Autoclusters(event.ad, event.columns, significant),
        fold_base(event),
        gone,
        factory,
        universe=_universe(event),
        periodic=policy.periodic(ad) | policy.periodic(event.columns),
        at_exit=policy.at_exit(ad) or policy.at_exit(event.columns),
        charged=accounting_group.charged(ad, event.columns, event.owner),
        timed=deferral.timed(ad) or deferral.timed(event.columns),
        limited=concurrency_limits.said(ad) or concurrency_limits.said(event.columns),
        wishes=_wishes(ad) | _wishes(event.columns),
        routed=awaits_route(ad) or awaits_route(event.columns),
        vo=_vo(event.ad) if awaits_route(ad) or awaits_route(event.columns) else "",
    )


def clusters_of(
    event: ClustersSubmitted, at: int, places: Iterable[int], significant: Iterable[str]
) -> Iterator[Cluster]:
    """
    Some of the submissions that were recorded together, by their places: what follows from what is the same is worked out once.
    """
    differing = frozenset(map(str.lower, event.columns))
    table = Autoclusters(event.ad, event.columns, significant)
    may_share = table.same is not None and differing.isdisjoint(_SHARED)
    model: Cluster | None = None
    for place in places:
        one = event.one(event.first + place)
        if model is None:
            cluster = cluster_of(one, at, DepartedJobs(), None, significant)
            model = msgspec.structs.replace(cluster) if may_share else None  # the first one changes, too
        else:
            cluster = msgspec.structs.replace(
                model,
                submitted=one,
                autoclusters=table.like(one.ad),
                base=model.base if isinstance(model.base(0)["RequestCpus"], int) else fold_base(one),
                gone=DepartedJobs(),
            )
        yield cluster


def _looked_at(spelled: Mapping[str, str]) -> list[str]:
    """The few attributes that what a queue keeps of a submission is made of, but for its autoclusters."""
    return [spelled[name] for name in _LOOKED_AT & spelled.keys()]


def _vo(ad: Ad) -> str:
    value = ad.get(VO, "")
    return value if isinstance(value, str) else ""


def _wishes(names: Iterable[str]) -> frozenset[str]:
    return WISHES.intersection(map(str.lower, names))


def _universe(event: ClusterSubmitted) -> int | None:
    if "JobUniverse" in event.columns:
        return None
    value = event.ad.get("JobUniverse", Universe.VANILLA)
    return value if isinstance(value, int) else Universe.VANILLA
