"""
What happened to each node, a line for each event (command JOBSTATE_LOG).

Pure.  A line is `<epoch> <node> <event> <job> - - <number>`: the number counts the tries of all nodes, so that each try of
a node has its own.
"""

from collections.abc import Iterator
from typing import Final

from kettle.dag.files.progress import Progress
from kettle_wire.codes import NodeJobKind, NodePart
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    SubmissionsFailed,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowStarted,
)

INTERNAL: Final = "INTERNAL"
_EVENTS: Final = {
    NodeJobKind.STARTED: "EXECUTE",
    NodeJobKind.EVICTED: "JOB_EVICTED",
    NodeJobKind.HELD: "JOB_HELD",
    NodeJobKind.RELEASED: "JOB_RELEASED",
    NodeJobKind.COMPLETED: "JOB_TERMINATED",
    NodeJobKind.REMOVED: "JOB_ABORTED",
}
_WORDS: Final = 7
"""Of a line about a node."""


class JobstateLog:
    """Events to lines; the numbers of tries go on behind `last`, of an earlier run of the DAG."""

    def __init__(self, progress: Progress, last: int = 0) -> None:
        """`progress` has taken an event before its lines are asked for."""
        self._progress: Final = progress
        self._last = last
        self._numbers: Final[dict[int, tuple[int, int]]] = {}
        """Of each node the last try, and its number."""

    def lines(self, at: float, event: WorkflowEvent) -> Iterator[str]:
        """What one event says."""
        when = int(at)
        match event:
            case WorkflowStarted():
                yield f"{when} {INTERNAL} *** DAGMAN_STARTED {event.workflow}.0 ***"
            case WorkflowEnded():
                yield f"{when} {INTERNAL} *** DAGMAN_FINISHED {event.exit_code} ***"
            case NodeJobsSeen():
                lasts = {
                    fact.step: place
                    for place, fact in enumerate(event.facts)
                    if fact.kind in _LEFT and fact.step.part == NodePart.JOB
                }
                for place, fact in enumerate(event.facts):
                    yield from self._fact(when, fact)
                    if lasts.get(fact.step) == place:
                        yield from self._outcome(when, fact)
            case SubmissionsFailed():
                for failure in event.failures:
                    if failure.step.part == NodePart.JOB:
                        yield self._line(when, failure.step.node, failure.step.attempt, "SUBMIT_FAILURE", "-")
            case _:
                pass

    def _fact(self, when: int, fact: NodeJobFact) -> Iterator[str]:
        part, kind = NodePart(fact.step.part), NodeJobKind(fact.kind)
        node, attempt = fact.step.node, fact.step.attempt
        if part is NodePart.JOB:
            if kind is NodeJobKind.SUBMITTED:
                for proc in range(fact.value):
                    yield self._line(when, node, attempt, "SUBMIT", f"{fact.cluster}.{proc}")
            elif kind in _EVENTS:
                yield self._line(when, node, attempt, _EVENTS[kind], f"{fact.cluster}.{fact.proc}")
        elif part is not NodePart.HOLD:
            job = self._job_of_script(node, part)
            if kind is NodeJobKind.SUBMITTED:
                yield self._line(when, node, attempt, f"{part.name}_SCRIPT_STARTED", job)
            elif kind in _LEFT:
                if part is NodePart.POST:
                    yield self._line(when, node, attempt, "POST_SCRIPT_TERMINATED", job)
                outcome = "FAILURE" if fact.value or kind is NodeJobKind.REMOVED else "SUCCESS"
                yield self._line(when, node, attempt, f"{part.name}_SCRIPT_{outcome}", job)

    def _outcome(self, when: int, fact: NodeJobFact) -> Iterator[str]:
        """
        What a try came to, if this was the end of its last job: once, also where several ended together.
        """
        node = fact.step.node
        jobs = self._progress.jobs.get(node)
        if jobs is None or jobs.cluster != fact.cluster or jobs.left:
            return
        rule = self._progress.plan.tolerances.get(node)
        well = rule.covers(jobs.failed, jobs.total) if rule is not None else not jobs.failed
        value = 0 if well else jobs.value
        yield self._line(when, node, fact.step.attempt, "JOB_SUCCESS" if well else "JOB_FAILURE", str(value))

    def _job_of_script(self, node: int, part: NodePart) -> str:
        cluster = self._progress.clusters.get(node)
        return "-" if part is NodePart.PRE or cluster is None else f"{cluster}.0"

    def _line(self, when: int, node: int, attempt: int, event: str, job: str) -> str:
        known, number = self._numbers.get(node, (-1, 0))
        if known != attempt:
            self._last += 1
            number = self._last
            self._numbers[node] = attempt, number
        return f"{when} {self._progress.plan.names[node]} {event} {job} - - {number}"


_LEFT: Final = frozenset({NodeJobKind.COMPLETED, NodeJobKind.REMOVED})


def last_number(text: str) -> int:
    """The highest number in a log of an earlier run; 0 if there is none."""
    numbers = (words[-1] for line in text.splitlines() if len(words := line.split()) == _WORDS)
    return max((int(number) for number in numbers if number.isdecimal()), default=0)
