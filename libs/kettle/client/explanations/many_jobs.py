"""Why many jobs are where they are: in groups with one reason each, as sentences."""

import re
from collections import Counter
from typing import Final

import msgspec

from kettle.client.explanations.job_state import Answer, answer, job_end
from kettle.client.jobs.status import status_of
from kettle.client.why_report import WhyGroup, WhyReports
from kettle.terminal.quantities import counted
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus

_WAYS: Final = 6


class GroupAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `kettle why` says of jobs that have one reason; `answer` is that of the first."""

    jobs: int
    first: str
    last: str
    answer: Answer


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """What `kettle why` says of many jobs."""

    groups: list[GroupAnswer]
    others: list[str] = []
    """Sentences about jobs that are not in the queue."""


def answers(reports: WhyReports, *, now: float) -> Answers:
    """The answers to why jobs are where they are at `now`."""
    clusters = Counter(job.cluster for group in reports.groups for job in {group.report.job, group.last})
    whole = reports.whole and not (reports.more or reports.unmade)
    groups = [
        GroupAnswer(
            jobs=group.jobs,
            first=str(group.report.job),
            last=str(group.last),
            answer=_of_cluster(answer(group.report, now=now), group, clusters if whole else Counter()),
        )
        for group in reports.groups
    ]
    others = [f"{counted(reports.more, 'job')} more have other reasons."] if reports.more else []
    others += [
        f"{counted(one.unmade, 'job')} of cluster {one.cluster} {'is' if one.unmade == 1 else 'are'} not in the queue yet: "
        f"{one.reason}."
        for one in reports.unmade
    ]
    others += [_ended(reports.ended, more=reports.ended_more)] if reports.ended else []
    return Answers(groups=groups, others=others)


def _of_cluster(told: Answer, group: WhyGroup, clusters: Counter[int]) -> Answer:
    """The answer with commands for all of the group, where it has the jobs of a cluster to itself."""
    cluster = group.report.job.cluster
    if group.jobs == 1 or clusters[cluster] != 2 or group.last.cluster != cluster:
        return told
    command = re.compile(rf"(kettle (?:edit|release|rm|vacate|continue)(?: --fast)?) {re.escape(told.job)}\b")
    sentences = [command.sub(rf"\1 {cluster}", sentence) for sentence in told.sentences]
    return msgspec.structs.replace(told, sentences=sentences)


def single(reports: WhyReports) -> bool:
    """Whether there is one job only, of which one says everything."""
    return len(reports.groups) == 1 and reports.groups[0].jobs == 1 and not (reports.unmade or reports.ended)


def heading(group: GroupAnswer) -> str:
    """Which jobs the sentences about the first are about."""
    if group.jobs == 1:
        return group.answer.sentences[0]
    return (
        f"{counted(group.jobs, 'job')}, {group.first} to {group.last}, {_STATES.get(group.answer.status, group.answer.status)} "
        f"for the same reason; of the first:"
    )


_STATES: Final = {
    "idle": "are idle",
    "held": "are held",
    "running": "run",
    "completed": "are completed",
    "removed": "are removed",
}


def _ended(ads: list[Ad], *, more: bool) -> str:
    """How many have left the queue in which way, with one of each."""
    ways, examples = Counter[str](), dict[str, str]()
    for ad in ads:
        removed = status_of(ad) == "removed" or ad.get("JobStatus") == JobStatus.REMOVED
        way = "were removed" if removed else job_end(ad) or "ended"
        ways[way] += 1
        examples.setdefault(way, f"{ad.get('ClusterId')}.{ad.get('ProcId')}")
    said = ", ".join(f"{number} {way} (as {examples[way]})" for way, number in ways.most_common(_WAYS))
    if more:
        return f"Of the newest {counted(len(ads), 'job')} that have left the queue {said}."
    return f"{counted(len(ads), 'job')} {'has' if len(ads) == 1 else 'have'} left the queue: {said}."
