"""Access points that join, at an iam that stands beside the pool's own server."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from kettle import VERSION
from kettle.auth.trust.keys import KeyPair, Kind
from kettle.auth.trust.pool import PoolTrust
from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.shard import Shard
from kettle.testing.services import Backend, eventually
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.job_credentials import ISSUE_JOB_TOKENS, IssueJobTokens
from kettle_wire.commands.master import (
    ADMIT_ACCESS_POINT,
    FORGET_ACCESS_POINT,
    AccessPointAdmitted,
    AdmitAccessPoint,
    ForgetAccessPoint,
)
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

from .conftest import Office, office_on


class Master:
    """Admits who has no name of its own queues."""

    def __init__(self) -> None:
        self.queues: list[str] = []
        self.forgotten: list[str] = []

    async def admit(self, request: AdmitAccessPoint, caller: Identity) -> AccessPointAdmitted:
        if request.name in self.queues:
            raise RefusedError(RefusalCode.UNACCEPTABLE, f"{request.name} is a queue of this pool")
        return AccessPointAdmitted(people_account="A")

    async def forget(self, request: ForgetAccessPoint, caller: Identity) -> AccessPointAdmitted:
        self.forgotten.append(request.name)
        return AccessPointAdmitted(people_account="A")


@pytest_asyncio.fixture
async def world(
    request: pytest.FixtureRequest, backend: Backend, tmp_path: Path
) -> AsyncIterator[tuple[Office, Master]]:
    """The parameter is how long credentials live, in seconds."""
    trust = PoolTrust(tmp_path / "home" / "credentials" / "trust", backend.subjects)
    trust.statements()
    master = Master()
    served: list[Served[Any, Any]] = [
        Served(ADMIT_ACCESS_POINT, master.admit),
        Served(FORGET_ACCESS_POINT, master.forget),
    ]
    own = {
        "workers_account": "",
        "workers_signing_key": "",
        "bus_master": "m",
        "worker_lifetime": getattr(request, "param", 3600.0),
    }
    async with backend.bus(daemon("master")) as bus:
        await bus.serve("master", "m", served, version=VERSION)
        async with office_on(backend, tmp_path, **own) as office:
            yield office, master


async def joined(office: Office, name: str) -> tuple[int, str]:
    made = await office.administrator.create_join_token(joins="schedd")
    key, people = KeyPair.new(Kind.USER).public, KeyPair.new(Kind.ACCOUNT).public
    status, answer = await office.join(made.token, name, key, joins="schedd", people=people)
    return status, answer.get("code", "")


async def test_the_name_of_a_queue_is_taken(world: tuple[Office, Master]) -> None:
    """
    Also where no collector knows of the queue: the master does, and what was recorded of the machine is undone.
    """
    office, master = world
    master.queues.append("ap1")
    assert (409, "join.name_taken") == await joined(office, "ap1")
    assert [] == await office.administrator.workers()
    assert (200, "") == await joined(office, "ap2")


async def test_the_name_of_a_queue_that_is_away_is_taken(world: tuple[Office, Master]) -> None:
    """
    A second queue of the pool's own, of another host than that of the master: no ad of it is left, and its shard is.
    """
    office, _master = world
    async with Shard.own(office.backend.log, "schedd.ap1", owner="another host"):
        pass
    assert (409, "join.name_taken") == await joined(office, "ap1")
    assert (200, "") == await joined(office, "ap2")


@pytest.mark.parametrize("world", [0.5], indirect=True)
async def test_whose_credential_is_over_has_no_people(world: tuple[Office, Master]) -> None:
    """Its master is told, once; the server believes its key until then."""
    office, master = world
    assert (200, "") == await joined(office, "ap1")

    async def forgotten() -> bool:
        return bool(master.forgotten)

    await eventually(forgotten)
    assert (200, "") == await joined(office, "ap2")

    async def both() -> bool:
        return "ap2" in master.forgotten

    await eventually(both)
    assert ["ap1", "ap2"] == master.forgotten


async def test_jobs_of_an_access_point_get_no_tokens(world: tuple[Office, Master]) -> None:
    """Its queue would say whose they are, so no shadow is given any for them."""
    office, _master = world
    assert (200, "") == await joined(office, "ap1")
    request = IssueJobTokens(schedd="ap1", job=JobId(1, 0), attempt=1)
    async with office.backend.bus(daemon("shadow")) as shadow:
        with pytest.raises(RefusedError, match="get no tokens") as caught:
            await shadow.call(ISSUE_JOB_TOKENS, "iam", request, deadline=10.0)
    assert RefusalCode.DENIED == caught.value.code
