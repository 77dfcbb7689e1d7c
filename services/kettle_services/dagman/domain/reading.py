"""What the events of a schedd's shard say of workflows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from kettle_services.dagman.domain.parts import Cluster
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import DagStatus, NodeJobKind
from kettle_wire.event_expansion import each, stands_for_many
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    FactoryClosed,
    JobCompleted,
    JobEdited,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobTold,
    JobVacated,
    decode,
)
from kettle_wire.events.workflow import NodeJobFact, NodeStep
from kettle_wire.frames import Entry, Frame
from kettle_wire.jobs import JobId

STEP: Final = "KettleWorkflowStep"
"""The attribute of jobs of nodes: `<workflow>/<node>/<attempt>/<part>/<run>`."""
_IN_THE_LOG: Final = STEP.encode()
_PARTS: Final = 5
_DIGITS: Final = 19
"""Of a number in the attribute: anybody may write anything there."""
_PROVISIONED: Final = 2


def step_of(text: object) -> tuple[int, NodeStep] | None:
    """The workflow and the step that the attribute of a job names; None: it names none."""
    if not isinstance(text, str):
        return None
    words = text.split("/")
    if len(words) != _PARTS:
        return None
    if not all(word.isascii() and word.isdecimal() and len(word) <= _DIGITS for word in words):
        return None
    workflow, *numbers = map(int, words)
    return workflow, NodeStep(*numbers)


class Said(msgspec.Struct):
    """What frames say of one workflow."""

    facts: list[NodeJobFact] = []
    reasons: dict[int, str] = {}
    removed: JobRemoved | None = None
    """Its DAG job was removed."""
    over: bool = False
    """No process of the DAG job runs any more, and none will."""
    submitted: set[NodeStep] = set()
    """The steps that are new."""
    steps: dict[int, NodeStep] = {}
    """By cluster which of them it was submitted for."""
    kinds: dict[tuple[int, int], NodeJobKind] = {}
    """What happened last to a job, by cluster and number."""


class Reader:
    """
    Reads frames in their order. `workflows` are those that are not over, as everything that was read so far has left them.
    """

    def __init__(self, workflows: dict[int, Workflow]) -> None:
        self.workflows: Final = workflows
        self._clusters: dict[int, int] = {
            cluster: number for number, workflow in workflows.items() for cluster in workflow.clusters
        }
        """Of jobs of nodes, with the workflow of each."""

    def read(self, frames: Iterable[Frame]) -> dict[int, Said]:
        """
        What frames say together, by workflow: whatever was decided because of one of them happens after the last. Raises
        UnknownEventError.
        """
        said: dict[int, Said] = {}
        for frame in frames:
            for entry in frame.entries:
                noun, _, name = entry.stream.partition("/")
                if noun in {"cluster", "clusters"}:
                    self._read_submissions(entry, said)
                elif noun in {"job", "jobs", "factory"}:
                    cluster = int(name.partition(".")[0])
                    if cluster in self._clusters:
                        self._read_node(entry, cluster, said)
                    elif cluster in self.workflows:
                        self._read_dag_job(entry, cluster, said)
        return said

    def forget(self, cluster: int) -> None:
        """Nothing more is to be known of its jobs."""
        self._clusters.pop(cluster, None)

    def _read_submissions(self, entry: Entry, said: dict[int, Said]) -> None:
        if _IN_THE_LOG not in entry.data:
            return
        event = decode(entry.data)
        match event:
            case ClusterSubmitted():
                self._read_submission(event.owner, event.cluster, event.ad.get(STEP), len(event.rows), said)
            case ClustersSubmitted():
                place = event.columns.index(STEP) if STEP in event.columns else None
                for cluster, row in enumerate(event.rows, event.first):
                    text = event.ad.get(STEP) if place is None else row[place]
                    self._read_submission(event.owner, cluster, text, 1, said)
            case _:
                pass

    def _read_submission(
        self, owner: str, cluster: int, text: object, jobs: int, said: dict[int, Said]
    ) -> None:
        if (found := step_of(text)) is None:
            return
        number, step = found
        workflow = self.workflows.get(number)
        if workflow is None or workflow.owner != owner or step not in workflow.orders:
            return
        about = _of(said, number)
        if step in about.submitted:
            return
        self._clusters[cluster] = number
        about.submitted.add(step)
        about.steps[cluster] = step
        about.facts.append(NodeJobFact(step, cluster, -1, NodeJobKind.SUBMITTED, jobs))

    def _read_node(self, entry: Entry, cluster: int, said: dict[int, Said]) -> None:
        number = self._clusters[cluster]
        workflow, about = self.workflows.get(number), _of(said, number)
        if workflow is None:
            return
        known = workflow.clusters.get(cluster)
        step = known.step if known is not None else about.steps.get(cluster)
        if step is None:
            return
        one = decode(entry.data) if not stands_for_many(entry) else None
        if isinstance(one, FactoryClosed):
            about.facts.append(NodeJobFact(step, cluster, -1, NodeJobKind.UNMADE, one.count))
            return
        for single in each(entry):
            if not single.stream.startswith("job/"):
                continue
            event = one or decode(single.data)
            proc = JobId.parse(single.stream.removeprefix("job/")).proc
            now = _last_kind(known, about, cluster, proc)
            kind, value, reason = _fact(event, now)
            if kind is None:
                continue
            if reason:
                about.reasons[len(about.facts)] = reason
            about.facts.append(NodeJobFact(step, cluster, proc, kind, value))
            about.kinds[cluster, proc] = kind

    def _read_dag_job(self, entry: Entry, number: int, said: dict[int, Said]) -> None:
        stop, about = self.workflows[number].stop, _of(said, number)
        removed = stop is not None and stop.status == DagStatus.REMOVED
        for single in each(entry):
            event = decode(single.data)
            match event:
                case JobRemoved():
                    about.removed = event
                case JobCompleted():
                    about.over = True
                case JobVacated() if removed or about.removed is not None:
                    about.over = True
                case _:
                    pass


def _of(said: dict[int, Said], number: int) -> Said:
    if number not in said:  # asked for each event: a new one has six parts
        said[number] = Said()
    return said[number]


def _last_kind(known: Cluster | None, about: Said, cluster: int, proc: int) -> int:
    if (last := about.kinds.get((cluster, proc))) is not None:
        return last
    return NodeJobKind.EVICTED if known is None else known.procs.get(proc, NodeJobKind.EVICTED)


_Fact = tuple[NodeJobKind | None, int, str]
_NOTHING: Final[_Fact] = None, 0, ""


def _fact(event: Event, now: int) -> _Fact:
    """What an event of a job is to a workflow: the kind, its value, the reason."""
    reader = _FACTS.get(type(event))
    return _NOTHING if reader is None else reader(event, now)


def _ended(event: JobCompleted, now: int) -> _Fact:
    if now == NodeJobKind.ABORTING:
        return NodeJobKind.REMOVED, 0, ""
    code, signal = event.exit.code, event.exit.signal
    return NodeJobKind.COMPLETED, -signal if signal else code or 0, ""


def _vacated(_event: JobVacated, now: int) -> _Fact:
    return NodeJobKind.REMOVED if now == NodeJobKind.ABORTING else NodeJobKind.EVICTED, 0, ""


def _removed(event: JobRemoved, now: int) -> _Fact:
    kind = NodeJobKind.ABORTING if now == NodeJobKind.STARTED else NodeJobKind.REMOVED
    return kind, 0, event.reason or (f"removed by {event.by}" if event.by else "")


def _told(event: JobTold | JobEdited, _now: int) -> _Fact:
    if event.attributes.get("ProvisionerState") == _PROVISIONED:
        return NodeJobKind.PROVISIONED, 0, ""
    return _NOTHING


def _started(_event: JobStarted, _now: int) -> _Fact:
    return NodeJobKind.STARTED, 0, ""


def _held(event: JobHeld, _now: int) -> _Fact:
    return NodeJobKind.HELD, event.code, event.reason


def _released(event: JobReleased, _now: int) -> _Fact:
    return NodeJobKind.RELEASED, 0, event.reason


_FACTS: Final[Mapping[type[Event], Callable[..., _Fact]]] = {
    JobStarted: _started,
    JobVacated: _vacated,
    JobCompleted: _ended,
    JobHeld: _held,
    JobReleased: _released,
    JobRemoved: _removed,
    JobTold: _told,
    JobEdited: _told,
}
