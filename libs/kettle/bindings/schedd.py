"""Schedd: jobs are submitted, looked at and acted upon."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NoReturn

import msgspec

from kettle import classad
from kettle.bindings.ads import ClassAd
from kettle.bindings.daemon_locations import pool_of
from kettle.bindings.enumerations import JobAction, QueryOpt, TransactionFlag
from kettle.bindings.errors import (
    ClassAdParseError,
    HTCondorReplyError,
    HTCondorValueError,
    NotCarriedOutError,
)
from kettle.bindings.expressions import ExprTree
from kettle.bindings.history import ended
from kettle.bindings.job_selection import Constraint, JobSpec, constraint_of, selection
from kettle.bindings.job_sets import job_sets
from kettle.bindings.pool_connections import ask, known, pool_here
from kettle.bindings.submit_description import Items, Submit
from kettle.bindings.submit_result import SubmitResult
from kettle.bindings.values import CONTEXT
from kettle.classad.nodes import held
from kettle.client import PoolFile, Submission
from kettle.client.jobs.submit_events import await_submit_events
from kettle_wire.ads.types import Ad
from kettle_wire.commands.schedd import Acted, Action, Outcome

_ACTIONS: Final[Mapping[JobAction, Action]] = {
    JobAction.Hold: "hold",
    JobAction.Release: "release",
    JobAction.Remove: "remove",
    JobAction.RemoveX: "remove_x",
    JobAction.Vacate: "vacate",
    JobAction.VacateFast: "vacate_fast",
    JobAction.Suspend: "suspend",
    JobAction.Continue: "continue",
}
_TOTALS: Final[tuple[tuple[Outcome, str], ...]] = (
    ("done", "TotalSuccess"),
    ("not_found", "TotalNotFound"),
    ("bad_status", "TotalBadStatus"),
    ("already_done", "TotalAlreadyDone"),
    ("denied", "TotalPermissionDenied"),
    ("too_large", "TotalError"),
)
_STATUSES: Final = {
    "idle": "Idle",
    "running": "Running",
    "held": "Held",
    "suspended": "Suspended",
    "removed": "Removed",
    "completed": "Completed",
}
_GIVEN: Final[Items] = ()


class Schedd:
    """
    A queue of jobs; without `location` the one of the pool that is found here.

    It may be used from several threads at once.
    """

    ads: ClassVar[type[ClassAd]] = ClassAd

    def __init__(self, location: ClassAd | None = None) -> None:
        if location is not None and not isinstance(location, ClassAd):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("location must be a ClassAd")
        self._pool: PoolFile | None = None if location is None else pool_of(location, "schedd")
        if location is None:
            pool_here()

    def __reduce__(self) -> tuple[type[Schedd], tuple[()]]:
        if self._pool is not None:
            raise TypeError("a Schedd with a location cannot be pickled: pickle the location")
        return type(self), ()

    @property
    def pool(self) -> PoolFile:
        """Where it is."""
        return known(self._pool)

    def submit(
        self,
        description: Submit,
        count: int = 0,
        spool: bool = False,
        itemdata: Items | None = _GIVEN,
        queue: str | None = None,
    ) -> SubmitResult:
        """
        Put the jobs of a description into the queue; when this returns, they cannot be lost.

        `itemdata` stands for the items of its queue statement, `count` for how often each is queued.  With `spool` they
        are held until their files were sent: `spool(result)`.
        """
        items = None if itemdata is _GIVEN else itemdata
        return self.send(description.submission(count, items, queue), spool=spool)

    def send(self, submission: Submission, *, spool: bool = False) -> SubmitResult:
        """Put jobs into the queue that are ready to be sent."""
        reply = ask(self.pool, lambda client: client.submit(submission, spool=spool))
        if not spool:
            await_submit_events(submission, reply.cluster, self.pool)
        wire: Ad = {**submission.ad, "ClusterId": reply.cluster}
        sent = range(reply.count if spool else 0)
        ads = [self._of(submission.queued(proc, reply.cluster)) for proc in sent]
        return SubmitResult(reply.cluster, 0, reply.count, self._of(wire), ads)

    def query(
        self,
        constraint: Constraint = "True",
        projection: Sequence[str] = (),
        callback: Callable[[ClassAd], Any] | None = None,
        limit: int = -1,
        opts: QueryOpt = QueryOpt.Default,
    ) -> list[Any]:
        """
        The ads of jobs in the queue; with `QueryOpt.SummaryOnly` one ad with how many there are, with `IncludeJobsetAds` also
        those of job sets.

        `callback` is called with each ad; what it returns stands for the ad, unless that is None.
        """
        select = msgspec.structs.replace(selection(True), constraint=constraint_of(constraint))
        if opts & (QueryOpt.AutoCluster | QueryOpt.GroupBy):
            raise NotCarriedOutError(f"{opts!r} is not carried out: query the jobs and group them")
        if opts & QueryOpt.DefaultMyJobsOnly:
            select = msgspec.structs.replace(select, owners=[self.pool.user])
        if opts & QueryOpt.SummaryOnly or limit == 0:
            totals = ask(self.pool, lambda client: client.totals(select))
            return [self._summary(totals.total, totals.statuses)] if opts & QueryOpt.SummaryOnly else []
        found = ask(
            self.pool,
            lambda client: client.jobs(select, projection=list(projection), limit=max(limit, 0)),
        )
        now = int(time.time())
        ads = [self._of(_at(ad, now, projection)) for ad in found]
        if opts & QueryOpt.IncludeJobsetAds:
            sets = (ad for ad in job_sets(self.pool) if _meets(ad, select.constraint))
            ads += map(self._of, _projected(sets, projection))
        if callback is None:
            return ads
        told = ((ad, callback(ad)) for ad in ads)
        return [ad if answer is None else answer for ad, answer in told]

    def act(self, action: JobAction, job_spec: JobSpec, reason: str | None = None) -> ClassAd:
        """Do something to jobs; the answer is an ad with TotalSuccess, TotalNotFound and so on."""
        word = _ACTIONS[JobAction(action)]
        select = selection(job_spec)
        acted = ask(self.pool, lambda client: client.act(word, select, reason or ""))
        return self._result(JobAction(action), acted)

    def edit(
        self,
        job_spec: JobSpec,
        attr: str,
        value: str | ExprTree,
        flags: TransactionFlag = TransactionFlag.Default,
    ) -> int:
        """Set an attribute of jobs to an expression; returns how many jobs were changed."""
        node = value.node if isinstance(value, ExprTree) else _parsed(attr, value)
        attributes = classad.ClassAd({attr: held(node)}).to_wire()
        select = selection(job_spec)
        acted = ask(self.pool, lambda client: client.edit_jobs(select, attributes))
        outcomes = Counter(outcome.outcome for outcome in acted.outcomes)
        if not outcomes["done"] and not outcomes["already_done"]:
            raise HTCondorReplyError(f"Unable to edit {attr} of {job_spec!r}: {_said(outcomes)}")
        return outcomes["done"] + outcomes["already_done"]

    def history(
        self,
        constraint: Constraint = None,
        projection: Sequence[str] = (),
        match: int = -1,
        since: int | str | ExprTree | None = None,
    ) -> list[Any]:
        """
        The ads of jobs that have left the queue, newest first; at most `match` of them.

        `since` is where to stop: a cluster, a job `C.P`, an expression, or (as some clients have it) a time.
        """
        found = ended(self.pool, constraint_of(constraint), match, since)
        return [self._of(ad) for ad in _projected(found, projection)]

    def jobEpochHistory(
        self,
        constraint: Constraint = None,
        projection: Sequence[str] = (),
        match: int = -1,
        since: int | str | ExprTree | None = None,
    ) -> NoReturn:
        """Not carried out: `kettle usage` reports single attempts."""
        raise NotCarriedOutError("the history of single attempts is not here: see kettle usage")

    def spool(self, result: SubmitResult | Iterable[ClassAd]) -> None:
        """
        Send the input of jobs that were submitted with `spool=True`, and have them released: those of a submission, or of ads
        as they were submitted or are in the queue.

        Raises:
            HTCondorIOError: a file cannot be read; the jobs stay held.
        """
        ads = result.spooled if isinstance(result, SubmitResult) else list(result)
        if not all(isinstance(ad, ClassAd) for ad in ads):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("spool takes the result of a submission, or a list of the ads of its jobs")
        if not ads:
            raise HTCondorValueError(
                "there is nothing to be sent: these jobs were not submitted with spool=True"
            )
        wires = [ad.inner.to_wire() for ad in ads]
        ask(self.pool, lambda client: client.spools.send(wires))

    def retrieve(self, job_spec: JobSpec) -> None:
        """
        Fetch what such jobs left to where their descriptions say; those that have ended leave the queue then.

        Raises:
            HTCondorIOError: something cannot be written here.
            HTCondorValueError: the files of none of the jobs were sent.
        """
        select = selection(job_spec)
        fetched = ask(self.pool, lambda client: client.spools.fetch(select))
        if not fetched.jobs:
            raise HTCondorValueError(
                f"of {job_spec!r} there is nothing to be fetched: no such jobs had their files sent"
            )

    def reschedule(self) -> None:
        """Do nothing: a schedd of Kettle publishes its demand at each change."""

    def refreshGSIProxy(self, cluster: int, proc: int, proxy_filename: str, lifetime: int = -1) -> NoReturn:
        """Not carried out: a job keeps the proxy file that it was started with."""
        raise NotCarriedOutError("proxies of running jobs are not renewed by this version of Kettle")

    def _of(self, wire: Ad) -> ClassAd:
        return self.ads.around(classad.ClassAd.from_wire(wire))

    def _summary(self, total: int, statuses: Mapping[str, int]) -> ClassAd:
        counts = {label: statuses.get(status, 0) for status, label in _STATUSES.items()} | {"Jobs": total}
        return self.ads(
            {"MyType": "Summary"} | counts | {f"Allusers{name}": count for name, count in counts.items()}
        )

    def _result(self, action: JobAction, acted: Acted) -> ClassAd:
        counts: Counter[Outcome] = Counter(outcome.outcome for outcome in acted.outcomes)
        for factory in acted.factories:
            counts[factory.outcome] += factory.unmade
        totals = {name: counts[outcome] for outcome, name in _TOTALS}
        changed = totals["TotalSuccess"]
        return self.ads(
            {
                **totals,
                "TotalJobAds": sum(counts.values()) - counts["not_found"],
                "TotalChangedAds": changed,
                "JobAction": int(action),
                "ActionResult": int(changed > 0),
                "ActionResultType": 2,
            }
        )


def _at(ad: Ad, now: int, projection: Sequence[str]) -> Ad:
    """The ads with the time of the answer, from which clients compute ages."""
    if projection and "servertime" not in {name.lower() for name in projection}:
        return ad
    return {"ServerTime": now} | ad


def _meets(ad: Ad, constraint: str) -> bool:
    if not constraint:
        return True
    value = classad.evaluate(classad.parse(constraint), classad.ClassAd.from_wire(ad), None, CONTEXT)
    return classad.is_true(value)


def _projected(ads: Iterable[Ad], projection: Sequence[str]) -> Iterable[Ad]:
    wanted = {name.lower() for name in projection}
    for ad in ads:
        yield {name: value for name, value in ad.items() if name.lower() in wanted} if wanted else ad


def _parsed(attr: str, text: object) -> Any:
    if not isinstance(text, str):
        return _parsed(attr, repr(ExprTree(text)))
    try:
        return classad.parse(text)
    except classad.ClassAdParseError as error:
        raise ClassAdParseError(f"{attr}: {text!r} is no expression: {error}") from error


def _said(outcomes: Counter[Any]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "there are no such jobs"
