"""
Who has shown a token has nothing run on the access point with the rights of the account, but the process of a workflow.
"""

import asyncio
import pwd
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest

from kettle.accounts.lookup import Accounts
from kettle.bus.ports import RefusedError
from kettle.dag.submission.sent_dag_job import SentDag, dag_job_ad
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.job_access import AccessCommands
from kettle_services.schedd.commands.job_edits import JobEdits
from kettle_services.schedd.commands.spooling import SpoolCommands
from kettle_services.schedd.commands.submissions import Submissions
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import AskAccess, EditJobs, FindSpool, Select, Submit
from kettle_wire.events import ClusterSubmitted
from kettle_wire.identity import Identity, bearer, daemon, user
from kettle_wire.jobs import JobId

ACCOUNTS = Accounts(
    privileged=True, directory=lambda name: pwd.struct_passwd((name, "x", 70_000, 70_000, "", "/", ""))
)
ADA, WITH_A_TOKEN, SHADOW = user("ada"), bearer("ada"), daemon("shadow")
VANILLA: Ad = {"Cmd": "/bin/true", "JobUniverse": 5}
DAG_JOB = dag_job_ad(
    SentDag(file="x.dag", files=["x.dag"]), interpreter=sys.executable, environment=["KETTLE_HOME=/run/kettle/ada"]
)  # fmt: skip


class Here:
    """What a schedd has of these commands."""

    def __init__(self, recorder: QueueRecorder, settings: ScheddSettings) -> None:
        self._numbers = count()
        self._recorder = recorder
        seal = AttributeSeal([bytes(32)])
        nobody: Any = cast("Any", None)
        limits, backlog = QueueLimits(recorder.queue, settings), Backlog(recorder.shard, limit=1000)
        self._submissions = Submissions(recorder, limits, backlog, settings, ACCOUNTS, seal)
        self._edits = JobEdits(recorder, settings, DeedsForOthers(recorder.queue, None), seal)
        self.spools = SpoolCommands(recorder, nobody, settings)
        self._access = AccessCommands(recorder, nobody, settings)

    async def submit(
        self, caller: Identity, ad: Ad, *rows: int, spool: bool = True
    ) -> tuple[int, Ad]:  # fmt: skip
        """Its cluster and ad; `rows`: universes of jobs."""
        columns = ["JobUniverse"] if rows else []
        request = Submit(
            id=f"{next(self._numbers)}", ad=ad, columns=columns, rows=[[each] for each in rows] or [[]], spool=spool
        )  # fmt: skip
        decision = await self._submissions.submit(request, caller)
        await self._recorder.record(decision.changes)
        event = decision.changes[0][1]
        assert isinstance(event, ClusterSubmitted)
        return event.cluster, event.ad

    async def edit(self, caller: Identity, cluster: int, **attributes: Any) -> str:
        """What became of it."""
        request = EditJobs(id="1", select=Select(clusters=[cluster]), attributes=attributes)
        (outcome,) = (await self._edits.edit(request, caller)).reply(cast("Any", None)).outcomes
        return outcome.outcome

    async def look_into(self, caller: Identity, cluster: int) -> str:
        """With which code that is refused."""
        with pytest.raises(RefusedError) as refused:
            await self._access.access(AskAccess(job=JobId(cluster, 0)), caller)
        return refused.value.code


@asynccontextmanager
async def access_point(tmp_path: Path) -> AsyncGenerator[Here]:
    settings = ScheddSettings(home=str(tmp_path))
    log, queue = MemoryLog(), Queue("schedd")
    async with Shard.own(log, "schedd.schedd", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, queue, interval=1.0)
        )
        yield Here(recorder, settings)
        committing.cancel()


@pytest.mark.parametrize("spool", [True, False])
async def test_a_token_runs_nothing_on_the_access_point(tmp_path: Path, *, spool: bool) -> None:
    """
    Alone, among others, and with what is nearly the job of a workflow; the account itself has them as before.
    """
    async with access_point(tmp_path) as here:
        tried: tuple[tuple[Ad, list[int]], ...] = (
            ({**VANILLA, "JobUniverse": 12}, []),
            ({"Cmd": "/bin/sh", "jobuniverse": 7}, []),
            ({"Cmd": "/bin/sh"}, [5, 12]),
            ({**DAG_JOB, "JobUniverse": 12}, []),
            ({**DAG_JOB, "Cmd": "/bin/sh"}, []),
            ({name: value for name, value in DAG_JOB.items() if name != "JobUniverse"}, [7, 7]),
        )
        for ad, rows in tried:
            with pytest.raises(RefusedError, match="a token does not let you run jobs of the") as refused:
                await here.submit(WITH_A_TOKEN, ad, *rows, spool=spool)
            assert RefusalCode.DENIED == refused.value.code
            _, recorded = await here.submit(ADA, ad, *rows, spool=spool)
            assert "SubmittedByToken" not in recorded
        await here.submit(WITH_A_TOKEN, VANILLA, spool=spool)


async def test_a_token_runs_a_workflow_whose_files_are_sent(tmp_path: Path) -> None:
    """
    Its job says that it came by a token, and takes its files; of one whose files are here already nothing is taken.
    """
    async with access_point(tmp_path) as here:
        cluster, recorded = await here.submit(WITH_A_TOKEN, DAG_JOB)
        assert recorded["SubmittedByToken"] is True
        await here.spools.find(FindSpool(cluster=cluster, person="ada", by_token=True), SHADOW)
        with pytest.raises(RefusedError, match="whose files are sent"):
            await here.submit(WITH_A_TOKEN, DAG_JOB, spool=False)
        with pytest.raises(RefusedError, match="SubmittedByToken is otherwise"):
            await here.submit(WITH_A_TOKEN, {**DAG_JOB, "SubmittedByToken": False})


async def test_a_token_does_nothing_to_the_accounts_own_jobs_there(tmp_path: Path) -> None:
    """
    It sends no files in the place of theirs, changes nothing that steers them, and does not look into them.
    """
    async with access_point(tmp_path) as here:
        cluster, _ = await here.submit(ADA, {**VANILLA, "JobUniverse": 12})
        asked = FindSpool(cluster=cluster, person="ada", by_token=True)
        with pytest.raises(RefusedError, match="a token does not let you send files for jobs of the local"):
            await here.spools.find(asked, SHADOW)
        assert "denied" == await here.edit(WITH_A_TOKEN, cluster, Cmd="/bin/sh")
        assert "denied" == await here.edit(WITH_A_TOKEN, cluster, JobPrio=4, Arguments="-c true")
        assert "done" == await here.edit(WITH_A_TOKEN, cluster, JobPrio=4)
        assert "done" == await here.edit(ADA, cluster, Arguments="-c true")
        assert RefusalCode.DENIED == await here.look_into(WITH_A_TOKEN, cluster)
        assert RefusalCode.NOT_RUNNING == await here.look_into(ADA, cluster)

        cluster, _ = await here.submit(ADA, VANILLA)
        await here.spools.find(FindSpool(cluster=cluster, person="ada", by_token=True), SHADOW)
        assert "done" == await here.edit(WITH_A_TOKEN, cluster, Cmd="/bin/sh")
        assert RefusalCode.NOT_RUNNING == await here.look_into(WITH_A_TOKEN, cluster)
