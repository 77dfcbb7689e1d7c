"""
Workflows submitted in the name of a person: each is a DAG job, whose process submits the jobs of its nodes.

That process runs on the access point with the account of its owner, and comes to the pool with what the pool has made for that
account.  Its files are sent with it: the DAG file and what belongs to it, or a document of PROMINENCE.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.accounts.lookup import own_name
from kettle.bus.ports import BusError
from kettle.client import Client, ClientError
from kettle.client.connections.pool_file import SYSTEM
from kettle.client.connections.transport import new_id
from kettle.dag.submission.sent_dag_job import SentDag, dag_job_ad
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.spooling import SmallFile, give_small
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import ACT, SUBMIT, Act, Select, Submit, Submitted
from kettle_wire.rest.problem import ProblemCode

_TAKEN_BACK: Final = "its files did not come"


class DagJob(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow to be run."""

    file: str
    """The DAG file, or the document; everything that is written is named after it."""
    files: Sequence[SmallFile]
    """With that one and all that belongs to it."""
    name: str = ""
    """Of the workflow in the queue; empty: that of the file and its number."""
    rescue_file: str = ""
    """One of the files, which says what of the DAG counts as done; empty: what that one says itself."""
    attributes: Ad = {}
    """What its ad says besides."""
    max_idle: int | None = None
    max_jobs: int | None = None


class DagJobs:
    """Submits them."""

    def __init__(self, home: Path) -> None:
        """`home`: the pool's directory."""
        self._home = home
        self._accounts = LocalAccounts(home)

    async def submit(self, client: Client, person: Person, dag: DagJob, *, command: str = "") -> Submitted:
        """
        The DAG job; when this returns, its files are there and it may run.  `client`: the person's.

        `command` is the id of a submission that may be repeated; without it each one is new.
        Raises RequestRefused: there is no account with whose rights its process could run; ClientError, BusError.
        """
        ad = self._ad(person, dag)
        request = Submit(id=command or new_id(), ad=ad, columns=[], rows=[[]], spool=True)
        submitted = await client.requests.ask(SUBMIT, request)
        try:
            await give_small(client, submitted.cluster, [dag.files])
        except (ClientError, BusError, RequestRefused):
            await taken_back(client, submitted.cluster)
            raise
        return submitted

    def _ad(self, person: Person, dag: DagJob) -> Ad:
        sent = SentDag(
            file=dag.file,
            files=[file.path for file in dag.files],
            rescue_file=dag.rescue_file,
            max_idle=dag.max_idle,
            max_jobs=dag.max_jobs,
        )
        made = dag_job_ad(sent, interpreter=sys.executable, environment=self._environment(person))
        ad: Ad = {**made, **dag.attributes}
        return {**ad, "JobBatchName": dag.name} if dag.name else ad

    def _environment(self, person: Person) -> list[str]:
        """By which its process finds the pool."""
        if person.name == own_name():
            return [f"KETTLE_HOME={self._home}"]
        if self._accounts.key_of(person.name) is None:
            raise RequestRefused(
                400,
                ProblemCode.NO_CONNECTION,
                f"the process of a workflow runs with an account of the access point, and {person.name} has none there that may use "
                "the pool: its administrator lets accounts in with `accounts` of [master]",
            )
        place = Path(SYSTEM, person.name)
        return [f"KETTLE_HOME={place}"] if place.is_dir() else []


async def taken_back(client: Client, cluster: int) -> None:
    """Jobs whose files do not come would be held until somebody removes them."""
    request = Act(id=new_id(), action="remove", select=Select(clusters=[cluster]), reason=_TAKEN_BACK)
    await client.requests.ask(ACT, request)
