"""Which jobs somebody wants to see, and finding them: in the queue, and among those that have left it."""

import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from functools import reduce
from typing import Any, Final

import msgspec

from kettle.classad.ad import text_of
from kettle.classad.nodes import Binary, Literal, Logical, Node, Parentheses, Reference, reference
from kettle.classad.values import UNDEFINED
from kettle.prominence.job_ads import DOCUMENT, LABEL, NAME
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.prominence.application import Asked, refused
from kettle_services.gateway.prominence.job_states import FIELDS, document_of, told
from kettle_services.gateway.prominence.numbers import job_of, numbers_of
from kettle_services.gateway.prominence.workflow_states import FIRST, RUNS, runs_of
from kettle_services.gateway.rest.application import Asked as RestAsked
from kettle_wire.commands.queue import Acted
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import LIST_HISTORY, LIST_JOBS, Job, Jobs, ListHistory, ListJobs
from kettle_wire.rest.route import Route

MOST: Final = 10_000
"""Jobs of one answer, which has no pages."""
WORKFLOW_OF: Final = "DAGManJobId"
"""Attribute of a job that a DAG job has submitted: the cluster of that."""
_NODE: Final = "DAGNodeName"
_PAGE: Final = 1000
_LABEL: Final = re.compile(r"[A-Za-z0-9]{1,512}")
_REMEMBERED: Final = 10_000


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a list is to have."""

    filter: str
    active: bool = True
    ended: bool = False
    newest: int = 1
    """So many of those that have ended; negative: all."""
    jobs: list[JobId] = []
    """None: whichever they are."""
    clusters: list[int] = []
    """All jobs of these; none: whichever they are."""
    fields: tuple[str, ...] = FIELDS
    status: str = ""


class Written(OrderedDict[str, str]):
    """
    Where each person has written last through this gateway, until the tables are so far: who submits a job and asks for it sees it.
    """

    def note(self, person: str, position: str) -> None:
        """Somebody has written there."""
        self[person] = position
        self.move_to_end(person)
        while len(self) > _REMEMBERED:
            self.popitem(last=False)

    def note_acted(self, person: str, acted: Acted) -> None:
        """Somebody has done something to jobs."""
        self.note(person, f"{acted.position.shard}:{acted.position.frame}")


def workflows_of(asked: Asked) -> list[int]:
    """The workflows whose jobs are asked for; raises RequestRefused."""
    if asked.text("workflow") != "true" or not asked.has("id"):
        return []
    return [job_of(number).cluster for number in numbers_of(asked.text("id"))]


def wanted(asked: Asked, runs: Sequence[int] = ()) -> Wanted:
    """Which jobs are asked for; `runs`: of workflows whose jobs alone are meant.  Raises RequestRefused."""
    everything, completed = asked.has("all"), asked.text("completed") == "true"
    numbers = numbers_of(asked.text("id")) if asked.has("id") else []
    of_workflow = asked.text("workflow") == "true"
    either = everything or (bool(numbers) and not of_workflow)
    named = constrained(asked, has(DOCUMENT), name=NAME, label=LABEL)
    if runs:
        named = Logical("&&", named, Parentheses(_of_runs(runs)))
    return Wanted(
        filter=text_of(named),
        active=either or not completed,
        ended=either or completed,
        newest=-1 if either or of_workflow else asked.number("num", 1),
        jobs=[] if of_workflow else list(map(job_of, numbers)),
        status=asked.text("status"),
    )


def one(number: int) -> Wanted:
    """One job, wherever it is."""
    return Wanted(filter=text_of(has(DOCUMENT)), ended=True, newest=-1, jobs=[job_of(number)])


def _own(name: str) -> Node:
    """An attribute of the job that only jobs of PROMINENCE have."""
    return Reference(name, name.lower(), base=reference("MY"))


def has(name: str) -> Node:
    """An attribute is there."""
    return Binary("isnt", _own(name), Literal(UNDEFINED))


def _of_runs(runs: Sequence[int]) -> Node:
    """A job is of one of these: in its cluster, or submitted by its DAG job."""
    of = [_is(name, run) for run in runs for name in ("ClusterId", WORKFLOW_OF)]
    return reduce(lambda one, other: Logical("||", one, other), of)


def node_of(runs: Sequence[int], name: str) -> Wanted:
    """All that was submitted for one node in some runs of a workflow, the last try at the end."""
    of_node = Logical("&&", Parentheses(_of_runs(runs)), _is(_NODE, name))
    found = Logical("&&", has(DOCUMENT), of_node)
    return Wanted(filter=text_of(found), ended=True, newest=-1)


def constrained(asked: Asked, found: Node, *, name: str, label: str) -> Node:
    """
    What is looked for by name and by label besides: texts of the request are literals in it, whatever is in them.

    Raises RequestRefused: that makes no sense.
    """
    if asked.has("name"):
        found = Logical("&&", found, _is(name, asked.text("name")))
    for constraint in asked.request.query.getall("constraint", []):
        key, equals, value = constraint.partition("=")
        if not equals or "=" in value or not _LABEL.fullmatch(key):
            raise refused(
                "Invalid constraint: it has to be LABEL=VALUE, with letters and digits before the sign"
            )
        found = Logical("&&", found, _is(label + key, value))
    return found


def _is(name: str, value: str | int) -> Node:
    return Binary("is", _own(name), Literal(value))


class JobLists:
    """Finds jobs of who asks."""

    def __init__(self, questions: Questions, written: Written) -> None:
        self._questions = questions
        self._written = written

    async def find(self, asked: Asked, wanted: Wanted) -> list[Job]:
        """Those that are wanted, by number; raises RequestRefused: they are too many for one answer."""
        person = asked.person.name
        at_least = self._written.get(person)
        common: dict[str, Any] = {
            "owner": [person],
            "cluster": sorted({*wanted.clusters, *(job.cluster for job in wanted.jobs)}),
            "filter": wanted.filter,
            "fields": list(wanted.fields),
            "at_least": at_least,
        }
        queued = [job async for job in self._all(asked, LIST_JOBS, ListJobs(**common, limit=_PAGE))]
        if at_least and self._written.get(person) == at_least:
            del self._written[person]  # the tables have it
        shown: list[Job] = []
        if wanted.active:
            shown += [job for job in queued if not told(job).has_ended or _stays(job)]
        if wanted.ended:
            left = _PAGE if wanted.newest < 0 else max(1, min(wanted.newest, _PAGE))
            ended = [job for job in queued if told(job).has_ended]
            count = 0
            async for job in self._all(asked, LIST_HISTORY, ListHistory(**common, limit=left)):
                ended.append(job)
                count += 1
                if 0 <= wanted.newest <= count:
                    break
            shown += _newest(ended, wanted.newest)
        # A job that has left the queue between the two questions is in both answers.
        unique = {JobId(job.cluster, job.proc): job for job in shown if _is_wanted(job, wanted)}
        return [unique[job] for job in sorted(unique)]

    async def runs(self, asked: Asked, workflows: Sequence[int]) -> list[int]:
        """These workflows, and the runs before of those that run a part again."""
        if not workflows:
            return []
        which = Wanted(
            filter=text_of(has(FIRST)), ended=True, newest=-1, clusters=[*workflows], fields=(*FIELDS, RUNS)
        )
        found = [run for job in await self.find(asked, which) for run in runs_of(job)]
        return found or [*workflows]

    async def _all(
        self, asked: Asked, route: Route, parameters: ListJobs | ListHistory
    ) -> AsyncIterator[Job]:
        inside = RestAsked(asked.person, parameters, None, asked.request)
        count = 0
        while True:
            page = await self._questions.ask(inside, route, parameters, Jobs)
            assert page.jobs is not msgspec.UNSET
            for job in page.jobs:
                count += 1
                if count > MOST:
                    raise refused(f"these are more than {MOST:,} jobs: name some with id or constraint")
                yield job
            if page.next is None:
                return
            parameters = msgspec.structs.replace(parameters, page=page.next)


def _stays(job: Job) -> bool:
    """Whether its owner wants to see it until it is removed."""
    policies: dict[str, object] = document_of(job.attributes or {}).get("policies", {})
    return policies.get("leaveInQueue") is True


def _newest(jobs: Sequence[Job], count: int) -> list[Job]:
    if count < 0:
        return list(jobs)
    last = sorted(jobs, key=lambda job: job.left or job.entered or job.submitted, reverse=True)
    return last[:count]


def _is_wanted(job: Job, wanted: Wanted) -> bool:
    named = not wanted.jobs or JobId(job.cluster, job.proc) in wanted.jobs
    return named and (not wanted.status or told(job).status == wanted.status)
