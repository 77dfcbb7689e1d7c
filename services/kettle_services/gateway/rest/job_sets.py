"""Which job sets are in the queues: found by what their clusters were submitted with."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import asyncpg

from kettle.jobs.history import Submission
from kettle.projections.stored_projection import instant
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_rows import SCHEDD, STATES
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, frames_tag
from kettle_services.gateway.rest.page_tokens import RowPlace, page_token, row_place
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.job_sets import JobSet, JobSets, ListJobSets
from kettle_wire.rest.problem import ProblemCode

MOST: Final = 4096
"""Clusters of sets: with more their submissions are too much to be read for one answer."""
_Key = tuple[str, str, int]
"""Owner, shard and number of a set."""


class JobSetQuestions:
    """Lists them."""

    def __init__(self, tables: JobTables, freshness: Freshness, *, most: int = MOST) -> None:
        self._tables = tables
        self._freshness = freshness
        self._most = most

    async def list(self, asked: Asked) -> Answer:
        """A page of sets."""
        parameters: ListJobSets = asked.parameters
        after = row_place(parameters, parameters.page) if parameters.page else None
        await self._freshness.wait(parameters.at_least)
        shards = [SCHEDD + name for name in parameters.schedd]
        async with self._tables.read() as reading:
            frames = await reading.frames()
            asked.require_changed(frames_tag(frames))
            rows = await reading.fetch(QUERIES["clusters_of_sets"], parameters.owner, shards, self._most + 1)
            if len(rows) > self._most:
                raise RequestRefused(
                    503,
                    ProblemCode.TOO_SLOW,
                    f"more than {self._most} clusters of the queues are in job sets: name owners or access points",
                )
            keys = {(row["shard"], row["cluster"]) for row in rows}
            sets = _sets(await reading.submissions(keys), parameters)
            found, more = _page(sets, after, parameters.limit)
            shown = [each for key in found for each in sets[key]]
            counts = await reading.fetch(
                QUERIES["counts_of_clusters"],
                [shard for shard, _ in shown],
                [cluster for _, cluster in shown],
            )
            submissions = await reading.submissions(set(shown))
        states = {(row["shard"], row["cluster"]): row for row in counts}
        jobsets = [_shown(key, sets[key], submissions, states) for key in found]
        following = None
        if more:
            owner, shard, number = found[-1]
            following = page_token(parameters, RowPlace(owner, shard, number, 0))
        return Answer(JobSets(jobsets=jobsets, next=following, frames=frames), frames_tag(frames))


def _sets(
    submissions: Mapping[tuple[str, int], Submission], asked: ListJobSets
) -> dict[_Key, list[tuple[str, int]]]:
    """The clusters of each set, the first submitted first."""
    sets: dict[_Key, list[tuple[str, int]]] = {}
    names = {name.lower() for name in asked.name}
    for (shard, cluster), submission in sorted(submissions.items()):
        number, name = submission.event.ad.get("JobSetId"), _name(submission)
        if isinstance(number, int) and name and (not names or name.lower() in names):
            sets.setdefault((submission.event.owner, shard, number), []).append((shard, cluster))
    return sets


def _name(submission: Submission) -> str:
    """What a cluster says that its set is called, spelt as the attribute may be; empty: nothing."""
    found = (value for name, value in submission.event.ad.items() if name.lower() == "jobsetname")
    name = next(found, "")
    return name if isinstance(name, str) else ""


def _page(sets: Iterable[_Key], after: RowPlace | None, limit: int) -> tuple[Sequence[_Key], bool]:
    """The keys of a page, and whether there are more behind."""
    last = None if after is None else (str(after.typed("text")), after.shard, after.cluster)
    behind = sorted(key for key in sets if last is None or key > last)
    return behind[:limit], len(behind) > limit


def _shown(
    key: _Key,
    clusters: Sequence[tuple[str, int]],
    submissions: Mapping[tuple[str, int], Submission],
    counts: Mapping[tuple[str, int], asyncpg.Record],
) -> JobSet:
    owner, shard, number = key
    states: Counter[str] = Counter()
    for each in clusters:
        states.update({STATES[status]: count for status, count in counts[each]["states"]})
    schedd, first = shard.removeprefix(SCHEDD), submissions[clusters[0]]
    return JobSet(
        id=f"{number}@{schedd}",
        schedd=schedd,
        number=number,
        name=_name(first),
        owner=owner,
        submitted=instant(min(submissions[each].at for each in clusters)),
        clusters=[cluster for _, cluster in clusters],
        states=dict(states),
        ended=sum(counts[each]["ended"] for each in clusters),
    )
