"""What running jobs command is decided as for their owners."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError, Served
from kettle.runtime.authorization import Authorization
from kettle.runtime.authorizer import Authorizer, SettingPlaces
from kettle_services.schedd.commands.pool_access import JobCommands
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.commands.queue import ACT, Act, Acted, Select
from kettle_wire.commands.schedd import JobCommand
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

JOB = JobId(1, 0)


class Queue:
    """One job of eve's that runs and may use the pool."""

    jobs = {JOB: SimpleNamespace(job=SimpleNamespace(status="running", attempt=1, claim="c"))}
    claims = ("c",)

    def ad(self, job: JobId) -> dict[str, object]:
        return {"WantPoolAccess": True}

    def owner(self, job: JobId) -> str:
        return "eve"


async def test_a_job_may_not_do_what_its_owner_may_not() -> None:
    """The lists of [authorization] hold for what comes from a job, too; nothing is handed on."""
    asked: list[Identity] = []

    async def act(request: Act, caller: Identity) -> Acted:
        asked.append(caller)
        raise RefusedError("reached", "")

    def commands(lists: Authorization) -> JobCommands:
        recorder = cast("Any", SimpleNamespace(queue=Queue()))
        authorize = Authorizer("schedd", lambda: lists, SettingPlaces(None))
        return JobCommands(recorder, ScheddSettings(), [Served(ACT, act)], authorize)

    shut = Authorization(domain="pool", deny={"WRITE": ("eve@*",)})
    body = msgspec.msgpack.encode(Act(id="1", action="hold", select=Select(jobs=[JOB])))
    request = JobCommand(job=JOB, attempt=1, verb=ACT.verb, body=body)
    with pytest.raises(
        RefusedError, match=r"eve@pool has not the level WRITE, which schedd.act takes: denied by"
    ):
        await commands(shut).command(request, daemon("shadow"))
    assert [] == asked
    with pytest.raises(RefusedError) as reached:
        await commands(Authorization()).command(request, daemon("shadow"))
    assert ("reached", ["eve"]) == (reached.value.code, [each.name for each in asked])
