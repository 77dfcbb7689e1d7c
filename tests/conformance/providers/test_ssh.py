"""Hosts behind a real OpenSSH server."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from tests.conformance.providers.line import Line, line
from tests.conformance.providers.suite import (
    ProviderSuite,
    World,
    bootstrap,
    gone,
    order,
    stand_in,
    until,
)

from kettle.testing.servers.sshd import SshServer, no_sshd, sshd
from kettle_services.provisioner.port import ProviderError
from kettle_services.provisioner.providers.ssh import Ssh, SshSettings
from kettle_wire.leases import ErrorClass, MachineState, Order
from kettle_wire.worker_pools import Offer

_OFFER = Offer(name="host", provider="hosts", cpus=1, memory=100)
_SCRIPT_BYTES = 1000
"""More than what asks for a session, and less than the script that makes a machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshServer]:
    if why := no_sshd():
        pytest.skip(why)
    with sshd(tmp_path_factory.mktemp("sshd")) as made:
        yield made


@pytest.fixture
async def between(server: SshServer) -> AsyncGenerator[Line]:
    async with line(server.port) as made:
        yield made


@pytest.fixture
def settings(server: SshServer, between: Line, tmp_path: Path) -> SshSettings:
    return SshSettings(
        hosts=[f"{server.user}@127.0.0.1:{between.port}"],
        key_file=str(server.place / "key"),
        known_hosts_file=str(server.known_hosts(between.port)),
        per_host=2,
        directory=str(tmp_path / "machines"),
        program=str(stand_in(tmp_path)),
    )


@pytest.fixture
def nobody(settings: SshSettings) -> str:
    return f"{settings.hosts[0]}/crowd-0-0"


@pytest.fixture
async def world(
    server: SshServer, between: Line, settings: SshSettings, tmp_path: Path
) -> AsyncGenerator[World]:
    async def opened(deployment: str) -> Ssh:
        provider = await settings.open(deployment)
        await provider.find()  # so that there is a connection
        return provider

    async def wrong() -> Ssh:
        return await msgspec.structs.replace(settings, key_file=str(server.place / "other")).open("here")

    @asynccontextmanager
    async def silent() -> AsyncGenerator[None]:
        async def lose() -> None:
            await until((tmp_path / "crowd-5-0.json").exists, "nothing is made")
            between.lose()

        with between.deaf(_SCRIPT_BYTES):
            losing = asyncio.create_task(lose())
            yield
            await losing

    made = World(
        open=opened,
        offer=_OFFER,
        bad_offer=Offer(name="elsewhere", provider="hosts", template="nowhere", cpus=1, memory=100),
        bootstraps=tmp_path,
        away=between.cut,
        silent=silent,
        wrong=wrong,
    )
    yield made
    for each in made.opened:
        await each.close()


class TestSsh(ProviderSuite):
    """The suite, and what is particular to hosts."""

    async def test_a_host_has_to_prove_itself(
        self, server: SshServer, settings: SshSettings, between: Line
    ) -> None:
        """A host with another key than the one that is known is told nothing."""
        known = str(server.known_hosts(between.port, key="other"))
        provider = await msgspec.structs.replace(settings, known_hosts_file=known).open("here")
        with pytest.raises(ProviderError) as refused:
            await provider.find()
        assert ErrorClass.AUTH is refused.value.error
        assert "does not prove" in str(refused.value)

    async def test_a_host_is_full_at_its_number(self, world: World) -> None:
        """No host gets more machines than it may have, however many are asked for at the same time."""
        provider = await world.provider()
        leases = [f"crowd-7-{number}" for number in range(4)]
        answers = await asyncio.gather(
            *(provider.create(order(_OFFER, each), bootstrap(each)) for each in leases),
            return_exceptions=True,
        )
        handles = [each for each in answers if isinstance(each, str)]
        refused = [each for each in answers if isinstance(each, ProviderError)]
        assert 4 == len(handles) + len(refused)
        assert len(handles) <= 2
        assert {ErrorClass.CAPACITY} == {each.error for each in refused}
        assert sorted(handles) == sorted(each.handle for each in (await provider.find()).machines)
        assert 2 - len(handles) == (await provider.room()).machines
        for each in handles:
            await provider.delete(each)
            await gone(provider, each)

    async def test_the_host_ends_a_machine_by_itself(self, world: World) -> None:
        """
        When its life is over a machine is ended there, also if nobody asks for it any more; its console can be read.
        """
        provider = await world.provider()
        handle = await provider.create(
            Order(lease="crowd-8-0", attempt=1, offer=_OFFER, life=7.0), bootstrap("crowd-8-0")
        )

        async def is_gone() -> bool:
            return MachineState.GONE is (await provider.get(handle)).state

        await until(is_gone, "it does not end")
        assert "term\n" == (world.bootstraps / "crowd-8-0.term").read_text()
        assert (await provider.console(handle)).startswith("the worker of crowd-8-0 begins\n")
        assert [] == (await provider.find()).machines
        await provider.delete(handle)
        assert "" == await provider.console(handle)

    async def test_what_was_interrupted_while_it_began_is_not_there(
        self, world: World, settings: SshSettings, tmp_path: Path
    ) -> None:
        """
        A directory without a process is a machine that begins, and after two minutes one that never did: its lease may be tried again.
        """
        provider = await world.provider()
        (host,) = settings.hosts
        left = tmp_path / "machines" / "here" / host / "crowd-9-0"
        left.mkdir(parents=True)
        handle = f"{host}/crowd-9-0"
        assert MachineState.PENDING is (await provider.get(handle)).state
        then = time.time() - 180.0
        os.utime(left, (then, then))
        assert MachineState.GONE is (await provider.get(handle)).state
        assert [] == (await provider.find()).machines
        assert handle == await provider.create(order(_OFFER, "crowd-9-0"), bootstrap("crowd-9-0"))
        await gone(provider, handle)
