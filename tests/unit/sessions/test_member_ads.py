"""What the jobs of a session are, in the words of the queue."""

import msgspec
import pytest

from kettle_services.sessions.domain.creation import planned
from kettle_services.sessions.domain.member_ads import member_ad
from kettle_services.sessions.domain.profiles import Profile
from kettle_wire.commands.sessions import NewSession
from kettle_wire.sessions import InteractiveMembers, MemberRole

from .one_session import OneSession, created


@pytest.mark.parametrize(("which", "marked"), [("none", []), ("head", ["head"]), ("all", ["head", "worker"])])
def test_machines_may_keep_room_for_those_that_are_interactive(
    which: InteractiveMembers, marked: list[MemberRole]
) -> None:
    """The profile says which; the attribute is that of the submit command `interactive`."""
    session = OneSession(created()).session
    session = msgspec.structs.replace(session, plan=msgspec.structs.replace(session.plan, interactive=which))
    roles: tuple[MemberRole, ...] = ("head", "worker")
    assert marked == [role for role in roles if member_ad(session, role, "").get("InteractiveJob") is True]


def test_a_head_is_interactive_unless_its_profile_says_otherwise() -> None:
    """Somebody waits for it."""
    plan, _ = planned(NewSession(kind="dask"), "dask", Profile(kind="dask"), "0123456789ab")
    assert "head" == plan.interactive
