import asyncio
from typing import cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError, ReplyTimeoutError
from kettle.published.sharing import Sharing
from kettle_services.gateway.published.job_lookup import JobLookup, QueuedJob
from kettle_services.gateway.published.member_access import MemberAccess
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.codes import JobStatus
from kettle_wire.commands.gateway import AdmitMember
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

OWN, OTHER = JobId(1, 0), JobId(2, 0)


def queued(job: JobId, *, owner: str = "ada", session: str = "abcdefgh") -> QueuedJob:
    return QueuedJob(job, "schedd", owner, JobStatus.RUNNING, Sharing(), (), session=session)


class Queue:
    """What the queue says of jobs."""

    def __init__(self, *jobs: QueuedJob) -> None:
        self.jobs = {each.job: each for each in jobs}

    async def job(self, job: JobId, schedd: str, *, fresh: bool = False) -> QueuedJob:
        return self.jobs[job]


def access(queue: Queue) -> MemberAccess:
    return MemberAccess(cast("JobLookup", queue), "https://gateway.example", "")


def admitted(members: MemberAccess, session: str = "abcdefgh") -> str:
    request = AdmitMember(schedd="schedd", job=OWN, session=session)
    return asyncio.run(members.admit(request, daemon("sessions"))).token


def test_a_job_reaches_its_own_session_alone() -> None:
    """Not a job of another session of its owner's, nor one of another owner's with the same words in it."""
    members = access(Queue(queued(OWN)))
    member = members.member(admitted(members))
    asyncio.run(members.require(member, queued(OTHER)))
    for stranger in (
        queued(OTHER, session="other000"),
        queued(OTHER, session=""),
        queued(OTHER, owner="bob"),
    ):
        with pytest.raises(RequestRefused, match="its own session alone"):
            asyncio.run(members.require(member, stranger))


def test_a_queue_that_says_nothing_is_asked_again() -> None:
    """It is no failure of the gateway, which would lose all tunnels with it."""

    class Silent(Queue):
        async def job(self, job: JobId, schedd: str, *, fresh: bool = False) -> QueuedJob:
            raise ReplyTimeoutError("too late")

    with pytest.raises(RefusedError, match="nobody says at the moment") as refused:
        admitted(access(Silent()))
    assert "unavailable" == refused.value.code


def test_it_ends_with_the_job() -> None:
    """Also of what was opened before, which is looked at again."""
    queue = Queue(queued(OWN))
    members = access(queue)
    member = members.member(admitted(members))
    queue.jobs[OWN] = msgspec.structs.replace(queue.jobs[OWN], status=JobStatus.HELD)
    with pytest.raises(RequestRefused, match="as long as it runs"):
        asyncio.run(members.require(member, queued(OTHER)))


def test_who_gets_none() -> None:
    """A job of which the queue does not say that it is of that session, and a token that was never made."""
    members = access(Queue(queued(OWN, session="")))
    with pytest.raises(RefusedError, match="no job of session"):
        admitted(members)
    with pytest.raises(RequestRefused, match="no token of this gateway"):
        members.member("kettle-member.invented")


def test_it_is_for_one_run() -> None:
    """The machine that had the job before does not come in by what it was given then."""
    queue = Queue(queued(OWN))
    members = access(queue)
    member = members.member(admitted(members))
    queue.jobs[OWN] = msgspec.structs.replace(queue.jobs[OWN], runs=1)
    with pytest.raises(RequestRefused, match="as long as it runs"):
        asyncio.run(members.require(member, queued(OTHER)))
