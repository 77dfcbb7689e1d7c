"""Slurm, by its commands."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kettle.commands.phrases import SLURM
from kettle.commands.port import Ran
from kettle_services.ce.batch.asking import Asking, said
from kettle_services.ce.batch.port import Job, NotTakenError, Submission, UnavailableError
from kettle_services.ce.domain.batch import extra_arguments
from kettle_services.ce.domain.batch import slurm as words_of
from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_services.ce.domain.batch.said import cleaned
from kettle_wire.batch import BatchEnd, BatchId, Intent


class Slurm:
    """Jobs of a cluster, or of several that know each other."""

    def __init__(self, asking: Asking, *, accounting: bool, clusters: Sequence[str] = ()) -> None:
        """
        `accounting`: whether `sacct` knows ended jobs; `clusters`: where jobs may be besides the cluster of the commands.
        """
        self._asking: Final = asking
        self._accounting: Final = accounting
        self._clusters: Final = clusters
        self.settling: Final = asking.settling

    async def check(self) -> Sequence[str]:
        """Whether the controller answers."""
        ran = await self._asking.run(["scontrol", "ping"])
        if ran.status or "UP" not in ran.output:
            raise UnavailableError(said(ran))
        return []

    async def submit(self, submission: Submission) -> BatchId:
        """The script reaches the controller by standard input."""
        directives = words_of.directives(
            submission.intent, submission.directory, submission.request, log=submission.log
        )
        script = await self._asking.script(submission, "#SBATCH", directives)
        if unknown := set(words_of.clusters_in(script.site)) - set(self._clusters):
            raise NotTakenError(
                f"the site's hook sends the job to {cleaned(', '.join(sorted(unknown)))}, which `clusters` of its batch system does not name: if its "
                "answer were lost it would not be looked for there",
                passes=True,
            )
        words = ["sbatch", "--parsable", *self._asking.arguments(submission, script, extra_arguments.SLURM)]
        ran = await self._asking.submit(words, script.text, owner=submission.owner)
        return self._asking.taken(ran, words_of.submitted(ran.output), SLURM)

    async def find(self, intents: Collection[Intent], owners: Collection[str]) -> Mapping[Intent, BatchId]:
        """By their names: what the controller of each cluster has, and what accounting remembers."""
        found: dict[Intent, BatchId] = {}
        for cluster in ("", *self._clusters):
            if rest := [each for each in intents if each not in found]:
                at = f";{cluster}" if cluster else ""
                found |= {
                    name: f"{number}{at}" for name, number in (await self._found(cluster, rest)).items()
                }
        return found

    async def _found(self, cluster: str, intents: Collection[Intent]) -> dict[Intent, str]:
        ran = await self._listed([*_on(cluster), f"--name={','.join(intents)}"])
        found = {each.name: each.id for each in words_of.jobs(ran.output) if each.name in intents}
        if self._accounting and (rest := [each for each in intents if each not in found]):
            words = [*_on(cluster), f"--name={','.join(rest)}", "--starttime=now-30days"]
            ran = await self._answer(_sacct(*words))
            found |= {
                name: number for number, (name, _) in words_of.accounted(ran.output).items() if name in rest
            }
        return found

    async def poll(self, jobs: Collection[Job]) -> Mapping[BatchId, ListedJob]:
        """
        One question for all jobs of a cluster, those that have ended included, as long as the controller knows them.
        """
        seen: dict[BatchId, ListedJob] = {}
        for cluster, mine in _by_cluster(jobs):
            owners = sorted({each.owner for each in mine if each.owner})
            users = [f"--user={','.join(owners)}"] if all(each.owner for each in mine) else []
            ran = await self._listed_of(_on(cluster), users)
            ids = {(_number(each), each.intent): each.id for each in mine}
            for each in words_of.jobs(ran.output):
                if (id_ := ids.get((each.id, each.name))) is not None:
                    seen[id_] = each
        return seen

    async def cancel(self, job: Job) -> bool:
        """The number may be another job's by now: the name has to fit."""
        words = ["scancel", f"--jobname={job.intent}", *_on(_cluster(job)), _number(job)]
        return await self._order(words, owner=job.owner)

    async def hold(self, job: Job, *, running: bool) -> None:
        """A job that runs is suspended, which operators may; else it is held."""
        await self._control(job, "suspend" if running else "hold", operator=running)

    async def release(self, job: Job, *, running: bool) -> None:
        """As `hold`."""
        await self._control(job, "resume" if running else "release", operator=running)

    async def _control(self, job: Job, verb: str, *, operator: bool) -> None:
        words = ["scontrol", *_on(_cluster(job)), verb, _number(job)]
        await self._order(words, owner="" if operator else job.owner)

    async def accounting(self, jobs: Collection[Job]) -> Mapping[BatchId, BatchEnd | None]:
        """What `sacct` says."""
        found: dict[BatchId, BatchEnd | None] = {}
        for cluster, mine in _by_cluster(jobs) if self._accounting else ():
            ids = {_number(each): each for each in mine}
            ran = await self._answer(_sacct(*_on(cluster), f"--jobs={','.join(ids)}"))
            for number, (name, end) in words_of.accounted(ran.output).items():
                if number in ids and name == ids[number].intent:
                    found[ids[number].id] = end
        return found

    async def _listed(self, words: Sequence[str]) -> Ran:
        return await self._answer(_squeue(*words))

    async def _listed_of(self, cluster: Sequence[str], users: Sequence[str]) -> Ran:
        """
        The jobs of users; of all, if it does not know one of them any more, whose jobs are there all the same: they are told by number and
        name.
        """
        ran = await self._asking.run(_squeue(*cluster, *users))
        if users and words_of.STRANGER in ran.errors:
            return await self._listed(cluster)
        return _whole(ran)

    async def _answer(self, words: Sequence[str]) -> Ran:
        return _whole(await self._asking.run(words))

    async def _order(self, words: Sequence[str], *, owner: str) -> bool:
        ran = await self._asking.run(words, owner=owner)
        there = not SLURM.is_unknown(ran.errors)
        if not there or (ran.status == 0 and "error:" not in ran.errors):
            return there
        if SLURM.is_away(ran.errors):
            raise UnavailableError(said(ran))
        raise NotTakenError(said(ran), passes=False)


def _whole(ran: Ran) -> Ran:
    """An answer with an error in it is none, however the command ended."""
    if ran.status or "error:" in ran.errors:
        raise UnavailableError(said(ran))
    return ran


def _squeue(*words: str) -> list[str]:
    fixed = ["--noheader", "--states=all", "--array", f"--Format={words_of.FORMAT}"]
    return ["env", "SLURM_TIME_FORMAT=%s", "squeue", *fixed, *words]


def _sacct(*words: str) -> list[str]:
    fixed = ["--noheader", "--parsable2", f"--format={words_of.ACCOUNTED}"]
    return ["env", "SLURM_TIME_FORMAT=%s", "sacct", *fixed, *words]


def _number(job: Job) -> str:
    return job.id.partition(";")[0]


def _cluster(job: Job) -> str:
    return job.id.partition(";")[2]


def _on(cluster: str) -> list[str]:
    return [f"--clusters={cluster}"] if cluster else []


def _by_cluster(jobs: Collection[Job]) -> Iterator[tuple[str, list[Job]]]:
    found: defaultdict[str, list[Job]] = defaultdict(list)
    for each in jobs:
        found[_cluster(each)].append(each)
    yield from found.items()
