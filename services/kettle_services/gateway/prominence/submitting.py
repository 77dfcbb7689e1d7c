"""Jobs as PROMINENCE's documents describe them, on their way to the access point."""

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kettle.bus.ports import BusError
from kettle.client import Client, ClientError
from kettle.client.connections.transport import new_id
from kettle.prominence.addresses import AS_JOB
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.instances import Permits, instance
from kettle.prominence.job_ads import JobSubmission
from kettle.prominence.job_documents import encoded, read_job
from kettle.prominence.nodes import WorkflowNode
from kettle.prominence.pull_credentials import Logins, taken_out
from kettle.prominence.substitution import substituted_length
from kettle.submit import Site
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.data import groups_of
from kettle_services.gateway.prominence.documents import Documents
from kettle_services.gateway.prominence.job_lists import Written
from kettle_services.gateway.prominence.pull_logins import store
from kettle_services.gateway.prominence.signatures import Signer
from kettle_services.gateway.rest.dag_jobs import taken_back
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.spooling import SmallFile, give_small
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.commands.queue import SUBMIT, Submit
from kettle_wire.prominence.job import Job
from kettle_wire.prominence.workflow import Workflow

_DAY_S: Final = 86400.0
_IN_QUEUE_S: Final = 31 * _DAY_S
"""As long as a document may let a job wait."""
_LONGEST_S: Final = 366 * _DAY_S
"""
So long somebody's jobs may fetch and send files, whatever their document says: a permit stays good for who is in a group no longer.
"""
_LARGEST: Final = 64 << 20
"""Characters of all jobs that are submitted together."""
_UNDEFINED: Final = Expr("undefined")
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "JobMaxRetries": 0,
    "JobNotification": 0,
    "JobPrio": 0,
    "OnExitHold": False,
    "OnExitRemove": True,
    "PeriodicRemove": False,
    "Rank": 0.0,
    "RequestGPUs": 0,
    "TransferInput": "",
}
"""What a job has that does not say it, where another of the same cluster does; of all other attributes it is undefined."""


class Submitting:
    """Submits them in the name of who sends them."""

    def __init__(self, signer: Signer, written: Written, documents: Documents) -> None:
        self._signer = signer
        self._documents = documents
        self._written = written

    async def submit(self, client: Client, person: Person, text: bytes, *, now: float) -> int:
        """
        The number of the job.

        Raises RequestRefused: the document has faults, of which the first is said, or names a file of somebody else.
        """
        try:
            (job,), logins = taken_out([read_job(text)])
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        node = WorkflowNode(job, None, {})
        return await self.submit_together(client, person, job, [node], [{}], logins, now=now)

    async def keep(self, person: Person, identifier: str, document: Job | Workflow) -> None:
        """Have a document that has input files be there if somebody wants to submit it again."""
        jobs = document.jobs if isinstance(document, Workflow) else [document]
        if any(job.inputs for job in jobs):
            await self._documents.keep(person.name, identifier, encoded(document))

    async def submit_together(
        self,
        client: Client,
        person: Person,
        document: Job | Workflow,
        nodes: Sequence[WorkflowNode],
        more: Sequence[Ad],
        logins: Logins,
        *,
        now: float,
    ) -> int:
        """
        The number of the cluster of these jobs of a document, all or none; `more`: attributes of each besides; `logins`: what was
        taken out of the document.

        Raises RequestRefused: one has a fault, or names a file of somebody else.
        """
        identifier = str(uuid.uuid4())
        try:
            made = await asyncio.to_thread(self.made, person, bounded(nodes), identifier, now)
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        ad, columns, rows = table_of([{**each.ad, **own} for each, own in zip(made, more, strict=True)])
        await store(client, logins)
        await self.keep(person, identifier, document)
        request = Submit(id=new_id(), ad=ad, columns=columns, rows=rows, spool=True)
        reply = await client.requests.ask(SUBMIT, request)
        self._written.note(person.name, f"{reply.position.shard}:{reply.position.frame}")
        files = [
            [SmallFile(file.filename, file.content, file.executable) for file in each.inputs] for each in made
        ]
        try:
            await give_small(client, reply.cluster, files)
        except (ClientError, BusError, RequestRefused):
            await taken_back(client, reply.cluster)
            raise
        return reply.cluster

    def made(
        self, person: Person, nodes: Iterable[WorkflowNode], identifier: str, now: float
    ) -> list[JobSubmission]:
        """
        The jobs of some nodes: what one may fetch and send, it may from its submission until it has to have ended.

        Raises DocumentRefused.
        """
        found: list[JobSubmission] = []
        for number, node in enumerate(nodes):
            own = f"{identifier}/{number}"
            seconds = _IN_QUEUE_S + 3 * 60 * node.job.resources.walltime
            found.append(instance(node, self.permits(person, own, seconds=seconds, now=now), own))
        return found

    def permits(self, person: Person, identifier: str, *, seconds: float, now: float) -> Permits:
        """What somebody's jobs may fetch and send; `seconds`: how long they may take."""
        expires = now + min(seconds, _LONGEST_S) + _DAY_S
        within = identifier.partition("/")[0]
        return Permits(
            arch=Site.here().arch,
            uploads=self._signer.permit("GET", "uploads", person.name, expires=expires),
            groups=[
                self._signer.permit("GET", "groups", group, expires=expires)
                for group in sorted(groups_of(person))
            ],
            outputs=self._signer.permit("PUT", "scratch", person.name, within=within, expires=expires),
            job=self._signer.permit(AS_JOB, "scratch", person.name, within=within, expires=expires),
        )


def bounded(nodes: Iterable[WorkflowNode]) -> Iterator[WorkflowNode]:
    """
    The nodes, as long as their documents with the values of parameters are not too much together; input files do not count.

    Raises DocumentRefused: they are.
    """
    total = 0
    for node in nodes:
        said = msgspec.json.encode(msgspec.structs.replace(node.job, inputs=[])).decode()
        own = len(node.job.tasks) * sum(
            map(len, node.parameters.values())
        )  # which are in the environment of each
        total += substituted_length(said, node.parameters) + own
        if total > _LARGEST:
            sentence = f"the jobs have more than {_LARGEST >> 20} MiB together, with the values of parameters"
            raise DocumentRefused(
                [Fault("", f"{sentence}: submit them in parts, and send long texts as files")]
            )
        yield node


def table_of(ads: Sequence[Ad]) -> tuple[Ad, list[str], list[list[Scalar]]]:
    """One ad of what all have alike, and a row of what each has besides."""
    names = list(dict.fromkeys(name for ad in ads for name in ad))
    rows = [[ad.get(name, _DEFAULTS.get(name, _UNDEFINED)) for name in names] for ad in ads]
    common = {name: rows[0][place] for place, name in enumerate(names) if _alike(row[place] for row in rows)}
    own = [place for place, name in enumerate(names) if name not in common]
    return common, [names[place] for place in own], [[row[place] for place in own] for row in rows]


def _alike(values: Iterable[Scalar]) -> bool:
    """Whether they are the same, types and all: 1 is not true."""
    return len({(type(value), value) for value in values}) == 1


def first_fault(error: DocumentRefused) -> str:
    """What is said of a document: this interface has room for one fault."""
    fault = error.faults[0]
    return f"{fault.sentence} (at {fault.pointer})" if fault.pointer else fault.sentence
