"""Jobs as PROMINENCE's documents describe them, on their way to the access point."""

import uuid
from typing import Final

from kettle.client import Client
from kettle.client.connections.transport import new_id
from kettle.prominence.faults import DocumentRefused, Fault
from kettle.prominence.job_ads import Surroundings, submission
from kettle.prominence.job_documents import read_job
from kettle.submit import Site
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.data import place_of
from kettle_services.gateway.prominence.job_lists import Written
from kettle_services.gateway.prominence.job_states import IDENTIFIER
from kettle_services.gateway.prominence.signatures import Place, Signer
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.spooling import SmallFile, give_small
from kettle_wire.commands.queue import ACT, SUBMIT, Act, Select, Submit
from kettle_wire.jobs import JobId
from kettle_wire.prominence.job import Job

_DAY_S: Final = 86400.0
_IN_QUEUE_S: Final = 31 * _DAY_S
"""As long as a document may let a job wait."""
ARCHIVE: Final = ".tgz"
"""What a directory is sent as."""


class Submitting:
    """Submits them in the name of who sends them."""

    def __init__(self, signer: Signer, written: Written) -> None:
        self._signer = signer
        self._written = written

    async def submit(self, client: Client, person: Person, text: bytes, *, now: float) -> int:
        """
        The number of the job.

        Raises RequestRefused: the document has faults, of which the first is said, or names a file of somebody else.
        """
        try:
            job = read_job(text)
            identifier = str(uuid.uuid4())
            made = submission(job, self._surroundings(person, job, identifier, now))
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        request = Submit(
            id=new_id(), ad={**made.ad, IDENTIFIER: identifier}, columns=[], rows=[[]], spool=True
        )
        reply = await client.requests.ask(SUBMIT, request)
        self._written.note(person.name, f"{reply.position.shard}:{reply.position.frame}")
        inputs = [SmallFile(each.filename, each.content, each.executable) for each in made.inputs]
        try:
            await give_small(client, reply.cluster, inputs)
        except BaseException:
            await _taken_back(client, reply.cluster)
            raise
        return reply.cluster

    def _surroundings(self, person: Person, job: Job, identifier: str, now: float) -> Surroundings:
        """What the job may fetch and send, from its submission until it has to have ended."""
        expires = now + _IN_QUEUE_S + 3 * 60 * job.resources.walltime + _DAY_S

        def upload(name: str) -> str:
            try:
                place = place_of(person, name)
            except RequestRefused as error:
                raise DocumentRefused([Fault("", str(error))]) from error
            return self._signer.url("GET", place, expires=expires)

        def output(name: str) -> str:
            place = output_place(person.name, identifier, name, directory=name in job.output_dirs)
            return self._signer.url("PUT", place, expires=expires)

        return Surroundings(arch=Site.here().arch, upload=upload, output=output)


def output_place(owner: str, identifier: str, name: str, *, directory: bool) -> Place:
    """Where a result of a job is kept."""
    return Place("scratch", owner, f"{identifier}/{name}{ARCHIVE if directory else ''}")


async def _taken_back(client: Client, cluster: int) -> None:
    """A job whose files do not come would be held for ever."""
    select = Select(jobs=[JobId(cluster, 0)])
    request = Act(id=new_id(), action="remove", select=select, reason="its input files did not come")
    await client.requests.ask(ACT, request)


def first_fault(error: DocumentRefused) -> str:
    """What is said of a document: this interface has room for one fault."""
    fault = error.faults[0]
    return f"{fault.sentence} (at {fault.pointer})" if fault.pointer else fault.sentence
