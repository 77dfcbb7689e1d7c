"""What running jobs command is decided as for their owners."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError, Served
from kettle.jobs.editable_attributes import refusal
from kettle.runtime.authorization import Authorization
from kettle.runtime.authorizer import Authorizer, SettingPlaces
from kettle_services.schedd.commands.pool_access import JobCommands
from kettle_services.schedd.domain.jobs.attempt import AttemptPhase, AttemptState
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.submission.in_session import SubmitInSession, in_session
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Scalar
from kettle_wire.commands.queue import ACT, SUBMIT, Act, Acted, Select, Submit, Submitted
from kettle_wire.commands.schedd import JobCommand
from kettle_wire.endpoint import Position
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

JOB = JobId(1, 0)


class Queue:
    """One job of eve's that runs and may use the pool."""

    jobs = {JOB: SimpleNamespace(job=Job("running", AttemptState(1, AttemptPhase.STARTING, "c")))}
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


async def test_what_a_job_submits_has_its_session() -> None:
    """Whatever the job itself says; what it asks otherwise is passed on as it is."""
    submitted: list[Submit] = []

    async def submit(request: Submit, caller: Identity) -> Submitted:
        submitted.append(in_session(request))
        return Submitted(cluster=2, count=1, position=Position("schedd.schedd", 1))

    recorder = cast("Any", SimpleNamespace(queue=Queue()))
    authorize = Authorizer("schedd", Authorization, SettingPlaces(None))
    commands = JobCommands(recorder, ScheddSettings(), [Served(SUBMIT, submit)], authorize)
    ad: Ad = {"Cmd": "/bin/true", "kettlesession": "schedd#9.0#1"}
    body = msgspec.msgpack.encode(Submit(id="1", ad=ad, columns=[], rows=[[]]))
    await commands.command(JobCommand(job=JOB, attempt=1, verb=SUBMIT.verb, body=body), daemon("shadow"))
    assert [{"Cmd": "/bin/true", "KettleSession": "schedd#1.0#1"}] == [each.ad for each in submitted]


def test_nobody_names_a_session_of_another() -> None:
    """Neither for all jobs nor for single ones, and not of a job in the queue."""
    named: Ad = {"kettlesession": "schedd#9.0#1"}
    cases: list[tuple[Ad, list[str]]] = [(named, []), ({}, ["KettleSession"])]
    for ad, columns in cases:
        rows: list[list[Scalar]] = [["schedd#9.0#1"]] if columns else [[]]
        submit = Submit(id="1", ad=ad, columns=columns, rows=rows)
        for each in (submit, SubmitInSession.of(submit, "schedd#1.0#1")):
            if columns or each is submit:
                with pytest.raises(Unacceptable, match="says which running job has submitted a job"):
                    in_session(each)
    assert "kept by the queue" in refusal("KettleSession")
