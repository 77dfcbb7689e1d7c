"""What a job's token may say, and when it is over."""

from collections.abc import Sequence

import pytest

from kettle.jobs.pool_access import session_of
from kettle_services.iam.domain import job_tokens
from kettle_services.iam.domain.job_tokens import JobTokenRules, Made
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.state import Register
from kettle_wire.events import IdentityEvent
from kettle_wire.job_tokens import NeededToken
from kettle_wire.jobs import JobId

RULES = JobTokenRules(
    scopes=("condor:/READ", "storage.read:/home/{owner}"),
    audiences=("https://pool", "https://storage"),
    lifetime=100,
)
SESSION = session_of("schedd", JobId(12, 0), 3)


def made(needed: NeededToken, *, token: str = "t", now: float = 0.0) -> Made:
    return job_tokens.made(
        needed, RULES, issuer="https://pool", owner="ada", session=SESSION, token=token, now=now
    )


def test_it_is_its_owners_for_this_attempt_and_for_minutes() -> None:
    """
    What is asked for is given; where nothing is, what the settings say, with the owner's name in their scopes.
    """
    grant = made(NeededToken(service="kettle"), now=10.0).grant
    assert ("ada", "schedd#12.0#3", 100, "wlcg") == (
        grant.subject, grant.claims["kettle_session"], grant.lifetime, grant.profile,
    )  # fmt: skip
    assert (("condor:/READ", "storage.read:/home/ada"), ("https://pool",)) == (grant.scopes, grant.audience)
    needed = NeededToken(
        service="scitokens", scopes=["storage.read:/home/ada/x"], audiences=["https://storage"]
    )
    grant = made(needed).grant
    assert (("storage.read:/home/ada/x",), ("https://storage",), "scitokens") == (
        grant.scopes, grant.audience, grant.profile,
    )  # fmt: skip


@pytest.mark.parametrize(
    "scope",
    ["condor:/WRITE", "storage.read:/home/bob", "storage.read:/home/ada/../bob", "storage.read:/home/adam",
     "storage.modify:/home/ada"],
)  # fmt: skip
def test_it_is_never_wider(scope: str) -> None:
    """Another level, another person's files, a way out of one's own, another verb."""
    with pytest.raises(Denied) as caught:
        made(NeededToken(service="kettle", scopes=[scope]))
    assert Code.TOKEN_SCOPE == caught.value.code
    with pytest.raises(Denied) as caught:
        made(NeededToken(service="kettle", audiences=["https://elsewhere"]))
    assert Code.TOKEN_TARGET == caught.value.code


def had(known: Register, *names: str, now: float = 0.0) -> None:
    """The attempt gets tokens of these ids, at once."""
    events = [made(NeededToken(service="kettle"), token=name, now=now).event for name in names]
    apply(known, job_tokens.issued(known, events))


def apply(known: Register, changes: Sequence[tuple[str, IdentityEvent]]) -> None:
    for stream, event in changes:
        known.apply(stream, event)


def test_at_the_end_of_the_attempt_all_of_its_tokens_are_withdrawn() -> None:
    """Those that live; said twice is said once, and after their time nothing is kept."""
    known = Register()
    had(known, "old", now=0.0)
    had(known, "new", "other", now=60.0)
    had(known, "newest", now=120.0)
    assert ["jobtokens/old"] == list(known.states)
    apply(known, job_tokens.ended(known, SESSION, now=130.0))
    names = ("old", "new", "other", "newest")
    assert (False, True, True, True) == tuple(known.is_revoked(token) for token in names)
    assert [] == job_tokens.ended(known, SESSION, now=130.0)
    assert {"Revoked"} == {type(state).__name__ for state in known.states.values()}


def test_of_an_attempt_whose_end_nobody_told_nothing_is_kept() -> None:
    """
    Its tokens have ended by themselves; if it lives after all, its next ones are in a stream of another name.
    """
    known = Register()
    had(known, "first")
    assert [] == job_tokens.over(known, now=99.0)
    apply(known, job_tokens.over(known, now=100.0))
    assert {} == known.states
    had(known, "second", now=200.0)
    assert ["jobtokens/second"] == list(known.states)
    restored = Register()
    restored.restore("jobtokens/second", known.states["jobtokens/second"])
    assert "jobtokens/second" == restored.stream_of_session(SESSION)
