"""What a shadow makes of iam's answers: tokens, a time of waiting, or a reason."""

from typing import Any

import pytest

from kettle.bus.ports import BusError, RefusedError
from kettle_services.shadow.attempts.job_tokens import TokenRequests
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.job_credentials import END_JOB_TOKENS, JobTokensMade
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.flocking import abroad
from kettle_wire.job_tokens import NONE_WHERE_JOINED, JobToken
from kettle_wire.jobs import JobId
from kettle_wire.session_attributes import FILES, ID

TOKEN = JobToken(name="kettle", text="canary", left=60.0)


class Iam:
    """Answers as a test wants."""

    payload_limit = 1 << 20

    def __init__(self, *answers: JobTokensMade | BusError) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def call(
        self, endpoint: Any, name: str, request: Any, *, deadline: float | None = None, headers: Any = None
    ) -> Any:
        self.asked.append((endpoint.verb, name, request))
        answer = self.answers.pop(0)
        if isinstance(answer, BusError):
            raise answer
        return answer


def assignment(ad: Ad | None = None, *, startd: str = "n1") -> Assignment:
    wants: Ad = {"OAuthServicesNeeded": "kettle"}
    return Assignment(
        job=JobId(1, 0),
        attempt=1,
        key=ClaimKey("c", "s"),
        startd=startd,
        slot="slot1@n1",
        ad=wants if ad is None else ad,
    )


async def refused(requests: TokenRequests, order: Assignment) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await requests.fetch(order)
    return caught.value


async def test_what_iam_refuses_is_refused_for_good() -> None:
    """
    Under one code, since a machine asks again after some of those that iam has; and the sentence is iam's.
    """
    iam = Iam(
        *(
            RefusedError(code, "no")
            for code in (RefusalCode.NOT_FOUND, RefusalCode.NOT_RUNNING, RefusalCode.DENIED)
        )
    )
    requests = TokenRequests(iam, ShadowSettings())
    for _ in range(3):
        why = await refused(requests, assignment())
        assert (RefusalCode.DENIED, "no") == (why.code, str(why))


async def test_while_iam_is_away_a_job_waits_for_a_time() -> None:
    """
    Then it is held with what to do, or runs without; an answer in between begins the time from the start.
    """
    away = BusError("nobody answers")
    waiting = TokenRequests(
        Iam(away, RefusedError(RefusalCode.UNAVAILABLE, "later")), ShadowSettings(token_wait=60.0)
    )
    assert [RefusalCode.BUSY] * 2 == [(await refused(waiting, assignment())).code for _ in range(2)]
    strict = TokenRequests(Iam(away), ShadowSettings(token_wait=0.0))
    why = await refused(strict, assignment())
    assert RefusalCode.DENIED == why.code
    assert "release the job: condor_release 1.0" in str(why)
    lenient = TokenRequests(
        Iam(away, JobTokensMade(tokens=[TOKEN])), ShadowSettings(token_wait=0.0, runs_without_tokens=True)
    )
    assert [[], [TOKEN]] == [(await lenient.fetch(assignment())).tokens for _ in range(2)]


async def test_jobs_of_an_access_point_that_has_joined_are_held_at_once() -> None:
    """With the reason, and iam is not asked: it would not be heard, and they would wait for it."""
    iam = Iam()
    requests = TokenRequests(iam, ShadowSettings(token_wait=60.0), joined=True)
    why = await refused(requests, assignment())
    assert (RefusalCode.DENIED, NONE_WHERE_JOINED) == (why.code, str(why))
    await requests.end(assignment())
    assert [] == iam.asked


async def test_jobs_that_want_none_and_jobs_abroad_get_none() -> None:
    """
    Nobody is asked about them, for files of a session neither, nor at their end; and no token shows in what is printed of an answer.
    """
    iam = Iam(JobTokensMade(tokens=[TOKEN]), BusError("away"))
    requests = TokenRequests(iam, ShadowSettings())
    assert "not submitted with use_oauth_services" in str(await refused(requests, assignment({})))
    assert "runs in the pool other" in str(await refused(requests, assignment(startd=abroad("other", "n1"))))
    member: Ad = {FILES: True, ID: "0123456789"}
    why = await refused(requests, assignment(member, startd=abroad("other", "n1")))
    assert "runs in the pool other" in str(why)
    await requests.end(assignment({}))
    assert [] == iam.asked
    assert "canary" not in repr(await requests.fetch(assignment()))
    await requests.end(assignment())
    assert END_JOB_TOKENS.verb == iam.asked[-1][0]
