"""What cannot be is refused where it is asked for, and leaves nothing that no job could be made of."""

import asyncio
from typing import Any, Literal, cast

import pytest

from kettle.bus.ports import Bus, RefusedError
from kettle.testing.patience import PATIENCE_S
from kettle.worker_pools.faults import PoolFileRefused
from kettle_services.sessions.carrying import Carrying
from kettle_services.sessions.domain.changes import changed_target
from kettle_services.sessions.domain.creation import NotPossible, planned
from kettle_services.sessions.domain.profiles import built_in, read_profiles
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.engine import Engine
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.member_jobs import ActOnMembers
from kettle_wire.commands.sessions import ChangeInteractive, NewSession
from kettle_wire.events.interactive import InteractiveChanged, InteractiveClosing

from .one_session import OneSession, created

DASK = built_in("python3")["dask"]
LONG = [f"{'a' * 60}{number}" for number in range(90)]
"""More than the attribute of a job takes."""


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (NewSession(kind="dask", services="web"), "services: 'web' is no service"),
        (NewSession(kind="dask", services="a:1/http, a:2/http"), "services: the service a is there twice"),
        (NewSession(kind="dask", share=["bob", "no body"]), "share: 'no body' is nobody"),
        (NewSession(kind="dask", share=LONG), "share: the list"),
    ],
)
def test_a_session_of_which_no_job_could_be_made_is_refused(new: NewSession, why: str) -> None:
    with pytest.raises(NotPossible, match=why):
        planned(new, "dask", DASK, "0123456789ab")


def test_a_session_is_not_shared_with_what_is_nobody() -> None:
    session = OneSession(created()).session
    with pytest.raises(NotPossible, match="share: 'no body' is nobody"):
        changed_target(session, ChangeInteractive(id="1", session="mine", share=["no body"]), DASK)


def test_services_of_a_profile_are_looked_at_with_the_file() -> None:
    with pytest.raises(PoolFileRefused, match=r"profiles\.toml:3: services: 'web' is no service"):
        read_profiles('[lab]\nkind = "notebook"\nservices = "web"\n', "profiles.toml")


def test_requirements_of_a_profile_are_looked_at_with_the_file() -> None:
    """Not when the first session is made of it, whose jobs would be refused."""
    with pytest.raises(PoolFileRefused, match=r"profiles\.toml:3: requirements: "):
        read_profiles('[lab]\nkind = "notebook"\nrequirements = "TARGET.Arch == "\n', "profiles.toml")
    right = read_profiles('[lab]\nkind = "notebook"\nrequirements = "HasGPU"\n', "profiles.toml")
    assert "HasGPU" == right["lab"].requirements


class RefusingQueue:
    """A schedd that takes no edit, and all else."""

    def __init__(self) -> None:
        self.actions: list[str] = []

    async def call(self, _endpoint: object, _name: str, request: object, **_more: object) -> None:
        assert isinstance(request, ActOnMembers)
        self.actions.append(request.action)
        if request.action == "edit":
            raise RefusedError(RefusalCode.REFUSED, "it is nobody with whom services can be shared")


async def test_jobs_are_removed_although_their_queue_shares_them_with_nobody_new() -> None:
    """What the queue refuses for good is said once, and the end of the session does not wait for it."""
    one = OneSession(created("process"))
    one.start_all()
    engine = _EngineOf(one)
    queue = RefusingQueue()
    carrying = Carrying(cast("Bus", queue), "schedd", cast("Engine", engine), over=lambda _session: None)
    target = one.session.target
    shared = type(target)(workers=target.workers, shared_with=["bob"])
    one.settle([InteractiveChanged(target=shared, by="ann", what="shared with bob")])
    running = asyncio.create_task(carrying.run())
    await engine.settled()
    assert ["edit"] == queue.actions
    one.settle([InteractiveClosing(outcome="stopped", reason="stopped by ann", by="ann")])
    await engine.settled()
    assert ["edit", "remove"] == queue.actions
    running.cancel()


class _Todo(asyncio.Event):
    """Knows whether somebody waits for it."""

    waits = False

    async def wait(self) -> Literal[True]:
        self.waits = True
        try:
            return await super().wait()
        finally:
            self.waits = False


class _EngineOf:
    """What `Carrying` needs of an engine with this one session."""

    def __init__(self, one: OneSession) -> None:
        self._one = one
        self.todo = _Todo()
        self.record: Any = self
        self.shard: Any = self

    @property
    def living(self) -> dict[str, InteractiveSession]:
        return {self._one.session.id: self._one.session}

    async def committed(self) -> None:
        """All is."""

    async def settled(self) -> None:
        """Have it carry out what there is, until it waits for more."""
        self.todo.set()
        async with asyncio.timeout(PATIENCE_S):
            while self.todo.is_set() or not self.todo.waits:
                await asyncio.sleep(0)
