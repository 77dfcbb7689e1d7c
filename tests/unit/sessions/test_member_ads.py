"""What the jobs of a session are, in the words of the queue."""

import msgspec
import pytest

from kettle_services.sessions.domain.creation import NotPossible, planned
from kettle_services.sessions.domain.member_ads import member_ad
from kettle_services.sessions.domain.profiles import Profile
from kettle_wire.commands.sessions import NewSession
from kettle_wire.sessions import InteractiveMembers, MemberRole, SessionSize

from .one_session import OneSession, created

ROLES: tuple[MemberRole, ...] = ("head", "worker")


@pytest.mark.parametrize(("which", "marked"), [("none", []), ("head", ["head"]), ("all", ["head", "worker"])])
def test_machines_may_keep_room_for_those_that_are_interactive(
    which: InteractiveMembers, marked: list[MemberRole]
) -> None:
    """The profile says which; the attribute is that of the submit command `interactive`."""
    session = OneSession(created()).session
    session = msgspec.structs.replace(session, plan=msgspec.structs.replace(session.plan, interactive=which))
    assert marked == [role for role in ROLES if member_ad(session, role, "").get("InteractiveJob") is True]


def test_a_head_is_interactive_unless_its_profile_says_otherwise() -> None:
    """Somebody waits for it."""
    plan, _ = planned(NewSession(kind="dask"), "dask", Profile(kind="dask"), "0123456789ab")
    assert "head" == plan.interactive


@pytest.mark.parametrize(("wanted", "worker"), [(None, 1024), (64, 64)])
def test_how_much_disk_each_job_asks_for(wanted: int | None, worker: int) -> None:
    """As much as was wanted, or else a gibibyte, as in what was recorded before anybody could say it."""
    profile = Profile(kind="dask", disk_allowed=(16, 2048), head_disk=100)
    new = NewSession(kind="dask", size=SessionSize(disk=wanted))
    plan, _ = planned(new, "dask", profile, "0123456789ab")
    session = msgspec.structs.replace(OneSession(created()).session, plan=plan)
    assert [100 << 10, worker << 10] == [member_ad(session, role, "")["RequestDisk"] for role in ROLES]
    old = OneSession(created()).session
    assert [1 << 20, 1 << 20] == [member_ad(old, role, "")["RequestDisk"] for role in ROLES]
    with pytest.raises(NotPossible, match="disk"):
        planned(NewSession(kind="dask", size=SessionSize(disk=4096)), "dask", profile, "0123456789ab")


def test_who_asks_for_gpus_runs_where_there_are_some() -> None:
    """A machine that says nothing of GPUs counts none: what asks for one must not match it."""
    profile = Profile(kind="dask", gpus=2)
    plan, _ = planned(NewSession(kind="dask"), "dask", profile, "0123456789ab")
    session = msgspec.structs.replace(OneSession(created()).session, plan=plan)
    head, worker = (member_ad(session, role, "") for role in ROLES)
    clause = "(TARGET.GPUs >= RequestGPUs)"
    assert "RequestGPUs" not in head
    assert 2 == worker["RequestGPUs"]
    assert [False, True] == [clause in str(each["Requirements"]) for each in (head, worker)]
