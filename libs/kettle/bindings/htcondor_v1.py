"""What was different in version 1 of the main module: transactions, iterators, and jobs as ads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from kettle.bindings import collector, daemons, job_event_log, module_functions, schedd, submit_description
from kettle.bindings.ads import ClassAd as AnyAd
from kettle.bindings.classad_v1 import ClassAd
from kettle.bindings.enumerations import QueryOpt, TransactionFlag
from kettle.bindings.expressions import ExprTree
from kettle.bindings.job_selection import Constraint
from kettle.bindings.pool_connections import ask
from kettle.bindings.submit_description import Items
from kettle.bindings.submit_result import SubmitResult
from kettle.client import Submission, select
from kettle_wire.ads.types import Ad, Expr

T = TypeVar("T")

_ABSENT: Final = Expr("undefined")
_GIVEN: Final = frozenset(
    {"clusterid", "procid", "owner", "user", "qdate", "globaljobid", "jobstatus", "mytype"}
)


class QueryIterator(Generic[T]):
    """Answers, one after the other."""

    def __init__(self, items: Iterable[T]) -> None:
        self._items = iter(items)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        return next(self._items)

    def next(self, mode: object = None) -> T:
        """The next one; raises StopIteration."""
        return next(self._items)

    def nextAdsNonBlocking(self) -> list[T]:
        """All that are left."""
        return list(self._items)

    def tag(self) -> str:
        """The name that the query was given: none."""
        return ""

    def done(self) -> bool:
        """Whether it has been answered."""
        return True


class Submit(submit_description.Submit):
    """A submit description, as `htcondor2.Submit`, which queues its jobs itself."""

    bytes_allowed: ClassVar[bool] = True

    @classmethod
    def _ad_kind(cls) -> type[AnyAd]:
        return ClassAd

    def queue(self, txn: Transaction, count: int = 0, ad_results: list[Any] | None = None) -> int:
        """Put its jobs into the queue; the number of their cluster."""
        result = txn.add(self.submission(count))
        if ad_results is not None:
            ad_results.extend(self.jobs(count, clusterid=result.cluster()))
        return result.cluster()

    def queue_with_itemdata(
        self, txn: Transaction, count: int = 1, itemdata: Items | None = None
    ) -> SubmitResult:
        """Queue the jobs for each item."""
        return txn.add(self.submission(count, itemdata))


class Transaction:
    """
    Submissions that belong together: if the block of a `with` fails, the jobs that it queued are removed again.

    They are in the queue as soon as they are queued, not at the end of the block.
    """

    def __init__(self, queue: Schedd) -> None:
        self._queue = queue
        self._clusters: list[int] = []

    def add(self, submission: Submission) -> SubmitResult:
        """Put jobs into the queue."""
        result = self._queue.send(submission)
        self._clusters.append(result.cluster())
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._clusters:
            jobs = select(*self._clusters)
            ask(self._queue.pool, lambda client: client.remove(jobs, "the transaction was aborted"))


class Schedd(schedd.Schedd):
    """A queue of jobs, as version 1 had it."""

    ads: ClassVar[type[AnyAd]] = ClassAd

    def transaction(
        self, flags: TransactionFlag = TransactionFlag.Default, continue_txn: bool = False
    ) -> Transaction:
        """A context in which jobs are queued."""
        return Transaction(self)

    def submit(  # type: ignore[override]  # version 1 took an ad, too
        self,
        description: submit_description.Submit | AnyAd,
        count: int = 0,
        spool: bool = False,
        ad_results: list[Any] | None = None,
        itemdata: Items | None = None,
    ) -> Any:
        """
        Put jobs into the queue: of a description, or `count` of the one that an ad is; then the answer is the number.
        """
        if not isinstance(description, AnyAd):
            return super().submit(description, count, spool, itemdata=itemdata)
        result = self.send(_of_ad(description, count or 1), spool=spool)
        if ad_results is not None:
            ad_results += self.query(f"ClusterId == {result.cluster()}")
        return result.cluster()

    def submitMany(
        self,
        cluster_ad: AnyAd,
        proc_ads: Sequence[tuple[AnyAd, int]],
        spool: bool = False,
        ad_results: list[Any] | None = None,
    ) -> int:
        """One cluster of the jobs that ads are: what they share, and pairs of what each has and how many."""
        shared = _sent(cluster_ad)
        each = [_sent(own) for own, count in proc_ads for _ in range(count)]
        names = list(dict.fromkeys(name for own in each for name in own))
        rows = [[own.get(name, shared.get(name, _ABSENT)) for name in names] for own in each]
        result = self.send(Submission(ad=shared, columns=names, rows=rows), spool=spool)
        if ad_results is not None:
            ad_results += self.query(f"ClusterId == {result.cluster()}")
        return result.cluster()

    def query(  # type: ignore[override]  # other names
        self,
        constraint: Constraint = "true",
        attr_list: Sequence[str] = (),
        callback: Any = None,
        limit: int = -1,
        opts: QueryOpt = QueryOpt.Default,
        *,
        projection: Sequence[str] = (),
        requirements: Constraint = None,
    ) -> list[Any]:
        """The ads of jobs in the queue."""
        wanted = constraint if requirements is None else requirements
        return super().query(wanted, attr_list or projection, callback, limit, opts)

    def xquery(
        self,
        requirements: Constraint = "true",
        projection: Sequence[str] = (),
        limit: int = -1,
        opts: QueryOpt = QueryOpt.Default,
        name: str | None = None,
        *,
        constraint: Constraint = None,
        attr_list: Sequence[str] = (),
    ) -> QueryIterator[Any]:
        """The result of `query` as an iterator."""
        wanted = requirements if constraint is None else constraint
        return QueryIterator(super().query(wanted, projection or attr_list, None, limit, opts))

    def history(  # type: ignore[override]  # other names, and an iterator
        self,
        requirements: Constraint = None,
        projection: Sequence[str] = (),
        match: int = -1,
        since: int | str | ExprTree | None = None,
        *,
        constraint: Constraint = None,
    ) -> QueryIterator[Any]:
        """The ads of jobs that have left the queue, newest first."""
        wanted = requirements if constraint is None else constraint
        return QueryIterator(super().history(wanted, projection, match, since))


class Collector(collector.Collector):
    """The collector, whose ads are version 1's."""

    ads: ClassVar[type[AnyAd]] = ClassAd


class Negotiator(daemons.Negotiator):
    """The negotiator, whose ads are version 1's."""

    ads: ClassVar[type[AnyAd]] = ClassAd


class JobEventLog(job_event_log.JobEventLog):
    """A job event log, whose ads are version 1's."""

    ads: ClassVar[type[AnyAd]] = ClassAd


class SecMan:
    """Sessions with daemons: Kettle has none, because its connection identifies the user."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def invalidateAllSessions(self) -> None:
        """Forget all sessions: there are none."""

    def ping(self, ad: AnyAd | str, command: str = "DC_NOP") -> AnyAd:
        """Ask the pool's schedd something; who it takes us for."""
        return ClassAd(dict(module_functions.ping(ad, command)))


def poll(active_queries: Iterable[QueryIterator[T]], timeout_ms: int = 20_000) -> Iterator[QueryIterator[T]]:
    """Queries in the order in which they are answered, which they are already."""
    return iter(list(active_queries))


def _of_ad(ad: AnyAd, count: int) -> Submission:
    return Submission(ad=_sent(ad), columns=[], rows=[[] for _ in range(count)])


def _sent(ad: AnyAd) -> Ad:
    """Without what the schedd itself says of a job."""
    return {name: value for name, value in ad.inner.to_wire().items() if name.lower() not in _GIVEN}
