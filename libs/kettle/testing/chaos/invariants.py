"""
What must be true when everything is over: the laws of the architecture, each as a check that says what breaks it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kettle.testing.chaos.evidence import Evidence
from kettle.testing.chaos.history import Life, RecordedHistory, flaws
from kettle.testing.chaos.liveness import PROBE
from kettle.testing.chaos.workload import Command, PromiseRecord
from kettle_wire.commands.accounting import OwnerUsage
from kettle_wire.commands.schedd import Action
from kettle_wire.events import (
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobNodeStarted,
    JobReleased,
    JobRemoved,
    JobStarted,
)
from kettle_wire.jobs import JobId

_LEAVES: Final[Mapping[Action, type[Event]]] = {"hold": JobHeld, "release": JobReleased, "remove": JobRemoved}
_TOLERANCE: Final = 1e-6
_SHOWN: Final = 20
USAGE: Final = "usage is the sum of the attempts"


class InvariantResult(msgspec.Struct, kw_only=True):
    """One law, how much it was held against, and what breaks it."""

    law: str
    examined: int
    problems: list[str]
    hidden: int = 0
    """How many more problems there are."""

    @property
    def kept(self) -> bool:
        """Whether nothing breaks it."""
        return not self.problems


def verdict(law: str, examined: int, problems: Iterable[str]) -> InvariantResult:
    """The first problems, and how many there are."""
    found = list(problems)
    return InvariantResult(
        law=law, examined=examined, problems=found[:_SHOWN], hidden=max(0, len(found) - _SHOWN)
    )


def on_record(ledger: PromiseRecord, past: RecordedHistory, evidence: Evidence) -> list[InvariantResult]:
    """The laws about what is recorded, promised and testified."""
    return [
        nothing_lost(ledger, past),
        nothing_submitted_twice(ledger, past),
        answers_hold(ledger, past),
        histories(past),
        everything_ended(past),
        nothing_run_twice(past, evidence),
        nodes_together(past, evidence),
        outputs(past, evidence),
    ]


def nothing_lost(ledger: PromiseRecord, past: RecordedHistory) -> InvariantResult:
    """Every cluster whose id was returned is recorded, with all of its jobs."""
    told = [each for each in ledger.submissions if each.cluster]
    problems = [
        f"cluster {each.cluster} ({each.batch}) was acknowledged and is recorded as "
        f"{past.clusters.get(each.cluster, 'nothing')}"
        for each in told
        if past.clusters.get(each.cluster) != each.batch
    ]
    sizes = Counter(job.cluster for job in past.jobs)
    problems += [
        f"cluster {each.cluster} was acknowledged with {each.count} jobs and has {sizes[each.cluster]}"
        for each in told
        if sizes[each.cluster] != each.count
    ]
    return verdict("what was acknowledged is recorded", len(told), problems)


def nothing_submitted_twice(ledger: PromiseRecord, past: RecordedHistory) -> InvariantResult:
    """A submission is recorded once however often it was repeated, and at most once if nobody answered."""
    times = Counter(past.clusters.values())
    problems = [f"batch {batch} is recorded {number} times" for batch, number in times.items() if number > 1]
    asked = {each.batch for each in ledger.submissions}
    problems += [f"batch {batch} was never submitted" for batch in times if batch not in asked | {PROBE}]
    return verdict("no submission is recorded twice", len(times), problems)


def answers_hold(ledger: PromiseRecord, past: RecordedHistory) -> InvariantResult:
    """What a command was answered has left its event, and no command has left more than one."""
    problems: list[str] = []
    examined = 0
    done: Counter[tuple[JobId, Action]] = Counter()
    asked: Counter[tuple[JobId, Action]] = Counter()
    for command in ledger.commands:
        asked.update((job, command.action) for job in command.jobs)
        examined += len(command.jobs)
        problems += _unanswered(command)
        done.update((each.job, command.action) for each in command.outcomes if each.outcome == "done")
    for job, action in asked:
        life = past.jobs.get(job, Life(""))
        left = life.count(_LEAVES[action])
        if done[job, action] > left:
            problems.append(
                f"{job}: {action} was answered 'done' {done[job, action]} times and left {left} events"
            )
    problems += [
        f"{job}: {left} events of {action}, which was asked for {asked[job, action]} times"
        for job, life in past.jobs.items()
        if past.clusters[job.cluster] != PROBE
        for action in ("release", "remove")
        if (left := life.count(_LEAVES[action])) > asked[job, action]
    ]
    return verdict("what commands were answered is recorded, once", examined, problems)


def _unanswered(command: Command) -> Iterable[str]:
    if command.answered and {each.job for each in command.outcomes} != set(command.jobs):
        yield f"{command.action} of {len(command.jobs)} jobs was answered for {len(command.outcomes)}"


def histories(past: RecordedHistory) -> InvariantResult:
    """Attempts follow each other, and nothing follows the end."""
    problems = [
        f"{job} ({life.name}): {'; '.join(wrong)}"
        for job, life in past.jobs.items()
        if (wrong := flaws(life.events))
    ]
    return verdict("every recorded life is well formed", len(past.jobs), problems)


def everything_ended(past: RecordedHistory) -> InvariantResult:
    """Each job has completed or was removed."""
    problems = [f"{job} ({life.name}) has not ended" for job, life in past.jobs.items() if not life.ended]
    return verdict("every job has ended", len(past.jobs), problems)


def nothing_run_twice(past: RecordedHistory, evidence: Evidence) -> InvariantResult:
    """
    No witness met itself; none ran more often than the record says, or not at all although it completed.
    """
    runs = evidence.runs()
    problems = [f"{name} met itself {number} times" for name, number in evidence.overlaps().items()]
    for job, life in past.jobs.items():
        attempts = life.count(JobAssigned)
        if runs[life.name] > attempts:
            problems.append(f"{job} ({life.name}) ran {runs[life.name]} times in {attempts} attempts")
        if life.completed and not runs[life.name]:
            problems.append(f"{job} ({life.name}) is recorded as completed and never ran")
    return verdict("no job runs twice at once, or more often than recorded", sum(runs.values()), problems)


def nodes_together(past: RecordedHistory, evidence: Evidence) -> InvariantResult:
    """
    A job of several nodes began when all of them had, in each attempt, and no node ran more often than it has attempts.
    """
    problems: list[str] = []
    others, examined = evidence.others(), 0
    for job, life in past.jobs.items():
        most = 0
        nodes = 1
        began: set[int] = set()
        for event in life.events:
            match event:
                case JobAssigned():
                    nodes = 1 + len(event.nodes)
                    began = set()
                    most += len(event.nodes)
                case JobNodeStarted():
                    began.add(event.node)
                case JobStarted() if nodes > 1:
                    examined += 1
                    if began != set(range(nodes)):
                        problems.append(f"{job} began with the nodes {sorted(began)} of {nodes}")
                case _:
                    pass
        if others[life.name] > most:
            problems.append(f"{job} ({life.name}): {others[life.name]} other nodes ran, and {most} had slots")
    return verdict("the nodes of a job run together, and as often as recorded", examined, problems)


def outputs(past: RecordedHistory, evidence: Evidence) -> InvariantResult:
    """Who completed did so with status 0, came to its end, and has the right output."""
    ends = evidence.ends()
    problems: list[str] = []
    examined = 0
    for job, life in past.jobs.items():
        completed = life.completed
        if completed is None:
            continue
        examined += 1
        if completed.exit.code != 0 or not ends[life.name]:
            how = f"exit code {completed.exit.code}, signal {completed.exit.signal}"
            problems.append(f"{job} ({life.name}): {how}, came to its end {ends[life.name]} times")
        elif wrong := evidence.wrong_output(life.name):
            problems.append(f"{job} ({life.name}): {wrong}")
    return verdict("every completed job has the right output", examined, problems)


def usage_is_attempts(past: RecordedHistory, usage: list[OwnerUsage]) -> InvariantResult:
    """What accounting says is the sum of what is recorded."""
    completed = sum(life.count(JobCompleted) for life in past.jobs.values())
    said = (
        sum(each.jobs_completed for each in usage),
        sum(each.attempts for each in usage),
        sum(each.wall for each in usage),
    )
    problems: list[str] = []
    if said[:2] != (completed, past.attempts):
        problems.append(
            f"accounting says {said[:2]} jobs and attempts, recorded are {completed, past.attempts}"
        )
    if abs(said[2] - past.wall) > _TOLERANCE * max(1.0, past.wall):
        problems.append(f"accounting says {said[2]:.6f} s of wall time, recorded are {past.wall:.6f} s")
    return verdict(USAGE, past.attempts, problems)
