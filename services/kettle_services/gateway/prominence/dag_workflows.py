"""
Workflows whose jobs wait for each other, or are very many: a DAG job with the document, whose process submits them.
"""

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from kettle.client import Client
from kettle.prominence.dry_run import dry_run
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.instances import IDENTIFIER
from kettle.prominence.job_ads import MAIL_AT_THE_END
from kettle.prominence.job_documents import encoded
from kettle.prominence.nodes import WorkflowNodes
from kettle.prominence.pull_credentials import taken_out
from kettle.prominence.workflow_orders import FILE, IDLE, OrderedWorkflow, WorkflowOrder
from kettle_services.gateway.prominence.application import refused
from kettle_services.gateway.prominence.job_lists import Written
from kettle_services.gateway.prominence.pull_logins import store
from kettle_services.gateway.prominence.submitting import Submitting, first_fault
from kettle_services.gateway.prominence.workflow_states import RUNS, attributes_of
from kettle_services.gateway.rest.dag_jobs import DagJob, DagJobs
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.spooling import SmallFile
from kettle_wire.prominence.workflow import Workflow
from kettle_wire.workflows import WORKFLOW_FILE

MOST: Final = 100_000
"""Nodes of one workflow that is a document."""
_A_WAIT_S: Final = 31 * 86400.0
"""As long as a document may let a job wait for a machine."""
_RUNS: Final = 3
"""A job is ended after so many times its walltime."""


class DagWorkflows:
    """Submits them in the name of who sends them."""

    def __init__(self, dag_jobs: DagJobs, submitting: Submitting, written: Written) -> None:
        self._dag_jobs = dag_jobs
        self._submitting = submitting
        self._written = written

    async def submit(
        self,
        client: Client,
        person: Person,
        workflow: Workflow,
        *,
        done: Sequence[int] = (),
        identifier: str = "",
        runs: Sequence[int] = (),
    ) -> int:
        """
        The number of the workflow, which is that of its DAG job.

        `done`: nodes that were done by the runs before, the numbers of which are `runs`, with results under `identifier`.
        Raises RequestRefused: it is too large, or asks for what is not carried out, or there is no account to run it with.
        """
        count = len(WorkflowNodes(workflow))
        jobs, logins = taken_out(workflow.jobs)
        workflow = msgspec.structs.replace(workflow, jobs=jobs)
        if count > MOST:
            raise refused(
                f"the workflow has {count:,} jobs, and one has {MOST:,} at most: submit it in parts"
            )
        identifier = identifier or str(uuid.uuid4())
        order = await asyncio.to_thread(self._order, person, workflow, identifier, list(done))
        dag = DagJob(
            file=FILE,
            files=[SmallFile(FILE, msgspec.json.encode(order))],
            name=workflow.name or "workflow",
            attributes={
                **attributes_of(workflow, count, is_first=True),
                IDENTIFIER: identifier,
                WORKFLOW_FILE: FILE,
                **({RUNS: ",".join(map(str, runs))} if runs else {}),
                **({"JobNotification": MAIL_AT_THE_END} if workflow.notifications else {}),
            },
            max_idle=IDLE,
        )
        await store(client, logins)
        await self._submitting.keep(person, identifier, workflow)
        submitted = await self._dag_jobs.submit(client, person, dag)
        self._written.note(person.name, f"{submitted.position.shard}:{submitted.position.frame}")
        return submitted.cluster

    def _order(self, person: Person, workflow: Workflow, identifier: str, done: list[int]) -> WorkflowOrder:
        """What the process of the DAG job is given, when the jobs that it will make can be made."""
        shape = dry_run(workflow)
        tries = (1 + (workflow.policies.maximum_retries or 0)) * (1 + (workflow.policies.maximum_reruns or 0))
        seconds = tries * (shape.height * _A_WAIT_S + _RUNS * shape.seconds)
        order = WorkflowOrder(
            document=msgspec.Raw(encoded(workflow)),
            identifier=identifier,
            permits=self._submitting.permits(person, identifier, seconds=seconds, now=time.time()),
            done=done,
        )
        try:
            ordered = OrderedWorkflow(order)
            for place in range(len(workflow.jobs)):
                ordered.submission(ordered.nodes.numbers(place)[0], 0)
        except DocumentRefused as error:
            raise refused(first_fault(error)) from error
        return order
