"""How attempts of routed jobs end: what their route says of it, and what counts as a failure of the route."""

import time
from collections.abc import Sequence

import msgspec

from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute, is_true
from kettle.jobs import exited
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.jobs.commands import End, Remove
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.job import evolve
from kettle_services.schedd.domain.jobs.local_removal import fate
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.routing import route_of
from kettle_services.schedd.domain.submission.routes import said_before, unroute
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.events import JobEvent
from kettle_wire.jobs import JobId

_TEST = "JobFailureTest"


class RoutedEnds:
    """Of the jobs of one queue; of one that has no route nothing is looked at but its end."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def decide(self, job: JobId, command: End) -> Sequence[JobEvent]:
        """What is recorded of an end."""
        entry = self._queue.jobs[job]
        ending, route = command.result.ending, route_of(entry)
        removed = ending is not None and ending.code == VacateCode.RemovedInBatchSystem
        if not (route or removed):
            return decide(entry.job, command)
        ad = self._queue.ad(job)
        events = self._events(job, command, ad, removed=removed)
        tests = entry.routed is not None and _TEST in entry.routed.added
        if events and route and (why := _failure(ad, command.result, tests=tests)):
            self._queue.routing.fail(route, 1, f"job {job}: {why}")
        return events

    def _events(self, job: JobId, command: End, ad: Ad, *, removed: bool) -> Sequence[JobEvent]:
        entry, ending = self._queue.jobs[job], command.result.ending
        events = decide(entry.job, command)
        if not (events and removed and ending is not None) or entry.job.status not in {"running", "idle"}:
            return events
        match fate(ad, time.time()):
            case "hold":
                held = msgspec.structs.replace(ending, code=HoldCode.GlobusGramError)
                result = msgspec.structs.replace(command.result, ending=held)
                return decide(entry.job, msgspec.structs.replace(command, result=result))
            case "retry":
                routed = route_of(entry)
                again = unroute(entry, ending.reason, said_before(entry) + 1) if routed else None
                return events if again is None else [*events, again]
            case "fail":
                after = entry.job
                for event in events:
                    after = evolve(after, event)
                return [*events, *decide(after, Remove(reason=ending.reason, by=""))]


def _failure(ad: Ad, result: AttemptResult, *, tests: bool) -> str:
    """
    Why an end is a failure of the route; empty: it is none.

    That people or the site's policy remove jobs there is none: a hundred of them would close a route that works for those of all others.

    `tests`: the route has said what is one. A submitter's word for it does not count: it would close the route for everybody.
    """
    ending, ran = result.ending, result.exit
    if ending is not None:
        return ending.reason if ending.holds else ""
    if ran is None or not tests:
        return ""
    then = dict(ad)
    exited(then, ran)
    try:
        value = evaluate_attribute(_TEST, ClassAd.from_wire(then), context=evaluation.at(time.time()))
    except EvaluationFailed:
        return ""
    return f"{_TEST} is true" if is_true(value) else ""
